//! How the shipped program is linked, so that it starts quickly and takes little memory.
//! Why: docs/decisions/0019-link.md.
//!
//! Only where it was measured: an optimised build for Linux on x86-64 with glibc, by the usual linker. Everything else
//! is linked as usual.

use std::env::{var, var_os};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The functions that a start runs, as patterns of their names, one in a line. `scripts/start-order` writes it.
const ORDER: &str = include_str!("start-order.txt");

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=start-order.txt");
    // `taut bench` says so if it was built to compile quickly; the release profile is.
    println!("cargo::rustc-env=TAUT_OPT_LEVEL={}", var("OPT_LEVEL").unwrap_or_default());
    println!("cargo::rustc-env=TAUT_TARGET={}", var("TARGET").unwrap_or_default());
    println!("cargo::rustc-env=TAUT_COMMIT={}", commit());
    let is = |name: &str, value: &str| var(name).is_ok_and(|now| now == value);
    let measured = is("OPT_LEVEL", "3")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && var("HOST") == var("TARGET");
    let flags = var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let other_linker = var_os("RUSTC_LINKER").is_some() || flags.contains("link");
    // packaging/programs has tried it with the linker that it sets, and says so.
    println!("cargo::rerun-if-env-changed=TAUT_START_ORDER");
    let tried = var_os("TAUT_START_ORDER").is_some();
    if !measured || (other_linker && !tried) {
        return;
    }
    // Nothing to relocate at each start.
    println!("cargo::rustc-link-arg-bins=-no-pie");
    side_by_side();
    // Another linker brings its own.
    if !other_linker {
        link_unwinder();
    }
}

/// The commit that an optimised program is built from: of this checkout, or as cargo noted it in a package. Other builds
/// would have to be made again after each commit. Sources that lie unpacked in another checkout do not have its commit.
fn commit() -> String {
    if !var("OPT_LEVEL").is_ok_and(|level| level == "3") {
        return String::new();
    }
    if let Ok(note) = std::fs::read_to_string(".cargo_vcs_info.json") {
        let commit = note.split('"').find(|word| word.len() == 40 && word.bytes().all(hex));
        return commit.map(|commit| commit[..12].to_owned()).unwrap_or_default();
    }
    let git = |words: &[&str]| {
        let said = Command::new("git").args(words).output();
        said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned()).unwrap_or_default()
    };
    if git(&["ls-files", "build.rs"]).is_empty() {
        return String::new();
    }
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]);
    if Path::new(&log).is_file() {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

/// What a start runs becomes a section of its own.
fn side_by_side() {
    let mut script = "SECTIONS\n{\n    .text.start :\n    {\n".to_owned();
    for name in ORDER.lines() {
        // A String takes everything.
        let _ = writeln!(script, "        *(.text.{name} .text.unlikely.{name})");
    }
    script.push_str("    }\n}\nINSERT BEFORE .text;\n");
    let Some(folder) = var_os("OUT_DIR") else { return };
    let path = Path::new(&folder).join("start-order.ld");
    // Without it the program starts less quickly.
    if std::fs::write(&path, script).is_ok() {
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", path.display());
    }
}

/// One library less to find and to map at each start. Where gcc has none to link, the shared one is used.
fn link_unwinder() {
    let found = Command::new("gcc").arg("-print-file-name=libgcc_eh.a").output();
    let path = found.map(|told| String::from_utf8_lossy(&told.stdout).trim().to_owned());
    if let Some(folder) = path.as_deref().ok().map(Path::new).and_then(Path::parent)
        && folder.is_absolute()
        && folder.join("libgcc_eh.a").is_file()
    {
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static=gcc_eh");
    }
}
