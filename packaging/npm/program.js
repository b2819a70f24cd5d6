// Where the program of this system is. Knows the names of the platform packages; starts nothing.
'use strict';

const path = require('node:path');

const systems = { 'linux-x64': 'taut', 'win32-x64': 'taut.exe' };

module.exports = function program() {
  const system = `${process.platform}-${process.arch}`;
  const file = systems[system];
  if (!file) {
    throw new Error(
      `there is no program for ${system} in npm's packages yet; with Rust: cargo install taut-cli`,
    );
  }
  const name = `taut-cli-${system}`;
  try {
    return path.join(path.dirname(require.resolve(`${name}/package.json`)), 'bin', file);
  } catch {
    throw new Error(
      `the package ${name} is not installed; it is an optional dependency, so install without --omit=optional`,
    );
  }
};
