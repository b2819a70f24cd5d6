#!/usr/bin/env node
// Becomes the program, in the same process: what a host does to this one, it does to the program.
'use strict';

const path = require('node:path');

let file;
try {
  file = require('../program.js')();
} catch (error) {
  console.error(`taut: ${error.message}`);
  process.exit(4);
}
const name = path.basename(process.argv[1]);
const given = process.argv.slice(2);

if (typeof process.execve === 'function' && process.platform !== 'win32') {
  // It is marked as experimental; a warning of Node's would be a line of ours in every host's log.
  process.removeAllListeners('warning');
  process.execve(file, [name, ...given], process.env);
}

// Windows, and Node before 22.15 without install scripts: a child with the same streams.
const { spawn } = require('node:child_process');
const child = spawn(file, given, { argv0: name, stdio: 'inherit', windowsHide: true });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']) {
  process.on(signal, () => child.kill(signal));
}
child.on('error', (error) => {
  console.error(`taut: ${file} could not be started: ${error.message}`);
  process.exit(4);
});
child.on('exit', (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
