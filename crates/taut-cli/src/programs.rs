//! Which word is a program that starts a server, and how a script is started.
//!
//! Knows names and endings of files; looks at the PATH and at this folder. Starts nothing.

use std::path::Path;

/// Programs that start servers: what they are is known without a look at the PATH.
const RUNNERS: [&str; 20] = [
    "npx", "uvx", "node", "python", "python3", "py", "uv", "bun", "bunx", "deno", "docker",
    "podman", "pnpm", "yarn", "npm", "pipx", "cargo", "go", "java", "dotnet",
];

/// Whether a word is such a program.
pub(crate) fn is_runner(word: &str) -> bool {
    RUNNERS.contains(&word)
}

/// Whether a word can be started as it is, or is a script of this folder.
pub(crate) fn can_start(word: &str) -> bool {
    let file = is_path(word) && Path::new(word).is_file();
    file || taut::Command::new(word).find_program().is_ok()
}

/// The command of a server: a script gets its interpreter, and a package of npm `npx`.
pub(crate) fn command(program: &str, rest: &[String]) -> Vec<String> {
    let path = Path::new(program);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let before: &[&str] = match ending {
        "py" if cfg!(windows) => &["python"],
        "py" => &["python3"],
        "js" | "mjs" | "cjs" => &["node"],
        "ts" | "mts" => &["npx", "-y", "tsx"],
        "jar" => &["java", "-jar"],
        "rb" => &["ruby"],
        "sh" => &["sh"],
        _ if program.starts_with('@') => &["npx", "-y"],
        _ => &[],
    };
    // A file of this folder is no program on the PATH.
    let here = before.is_empty() && path.is_file() && path.components().count() == 1;
    let program =
        if here && !program.starts_with('.') { format!("./{program}") } else { program.to_owned() };
    let before = before.iter().map(|&word| word.to_owned());
    before.chain([program]).chain(rest.iter().cloned()).collect()
}

/// A word with a `/`, the name of a script, or a file of this folder.
pub(crate) fn is_path(word: &str) -> bool {
    let ending = Path::new(word).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let script = ["js", "mjs", "cjs", "ts", "mts", "py", "rb", "sh", "jar", "exe", "cmd", "bat"];
    !word.starts_with('-')
        && (word.contains(['/', std::path::MAIN_SEPARATOR])
            || script.contains(&ending)
            || Path::new(word).is_file())
}
