// Puts the program in the place of the launchers, so that no Node stands between a host and the program. Without
// install scripts the launchers do the same by themselves where Node can (22.15 and newer). Never fails an install.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

const { bin } = require('./package.json');

if (process.platform !== 'win32') {
  try {
    const program = require('./program.js')();
    for (const launcher of Object.values(bin)) place(program, path.join(__dirname, launcher));
  } catch {
    // The launcher says what is missing, when it is started.
  }
}

// The launcher is replaced in one step: it is whole at every moment.
function place(program, launcher) {
  const part = `${launcher}.${process.pid}`;
  try {
    fs.linkSync(program, part);
  } catch {
    fs.copyFileSync(program, part);
  }
  fs.chmodSync(part, 0o755);
  fs.renameSync(part, launcher);
}
