//! Slips on the command line, and that what is said leads to what was meant.

use super::hosts::Place;
use super::*;

/// A project with one server, `good`.
fn place() -> Place {
    let place = Place::empty();
    place.put(".mcp.json", r#"{ "mcpServers": { "good": { "command": "npx" } } }"#);
    place
}

/// Each slip, and what is said about it.
#[track_caller]
fn told(place: &Place, table: &[(&str, &str)]) {
    for (line, said) in table {
        let run = place.run(line).exits(2);
        assert!(run.err.contains(said), "{line}: {}", run.err);
    }
}

/// `-- $CMD` with an empty variable: a script must not be green with nothing tested.
#[test]
fn two_dashes_with_nothing_after_them_are_a_mistake() {
    for command in [
        "smoke",
        "list",
        "list tools",
        "call x a=1",
        "read x://y",
        "prompt x",
        "shell",
        "watch",
        "doctor",
        "smoke demo",
    ] {
        let run = run(&format!("{command} --"), &[]).exits(2);
        assert!(run.err.starts_with("error: no command was given"), "{command}: {}", run.err);
        assert_eq!(run.out, "", "{command}");
    }
    run("bench --", &[]).exits(2);
    let run = run("smoke --json --", &[]).exits(2);
    assert_eq!(run.json()["error"]["kind"], "usage");
    super::run("smoke", &[]).exits(0);
    super::run("list", &["taut".into(), "serve".into(), "--".into()]).exits(0);
}

#[test]
fn words_in_another_order_are_put_right() {
    told(
        &place(),
        &[
            (
                "call good echo text=x",
                "good is a server; the tool comes first\n  try: taut call echo text=x good\n",
            ),
            (
                "call echo good text=x",
                "good is a server; its name comes last\n  try: taut call echo text=x good\n",
            ),
            (
                "read good demo://readme",
                "good is a server; the address comes first\n  try: taut read demo://readme good\n",
            ),
            (
                "prompt good hello name=x",
                "good is a server; the prompt comes first\n  try: taut prompt hello name=x good\n",
            ),
            ("prompt hello good name=x", "try: taut prompt hello name=x good\n"),
            (
                "call echo text=x npx srv",
                "goes after two dashes\n  try: taut call echo text=x -- npx srv\n",
            ),
            ("good", "good is a server\n  try: taut smoke good\n"),
            ("-v smoke", "\noptions go after the command: taut smoke -v …\n"),
            ("--json list good", "options go after the command: taut list --json …\n"),
            (
                "call echo --text x -- npx",
                "\narguments are written key=value: taut call echo text=…\n",
            ),
            // The tip of clap was --args.
            ("call slow --s 3 -- npx", "found\n\nUsage: taut"),
            ("call slow --s 3 -- npx", "arguments are written key=value: taut call slow s=…\n"),
            ("call echo --jsn -- npx", "'--json'"),
            ("call slow steps=x good", "try: taut call slow steps=… good\n"),
            ("call slow steps:3 good", "try: taut call slow steps=… good\n"),
            ("list --env FOO good", "to pass on your own: FOO=\"$FOO\"\n"),
            (
                "list npx -y srv",
                "\nthe server's command goes after two dashes: taut list -- npx some-server\n",
            ),
            ("call echo text=x npx --yes srv", "goes after two dashes"),
        ],
    );
}

#[test]
fn a_tip_that_leads_nowhere_is_not_given() {
    let place = place();
    for line in ["smoke --josn", "call echo --text x -- npx", "list npx -y srv", "-v smoke"] {
        let run = place.run(line).exits(2);
        assert!(!run.err.contains("as a value"), "{line}: {}", run.err);
    }
    assert!(place.run("smoke --josn").err.contains("a similar argument exists: '--json'"));
    assert!(!place.run("smoke good --josn").err.contains("two dashes"));
}

#[test]
fn arguments_may_be_one_json_object() {
    let words = ["call", "echo", r#"{"text":"two words"}"#, "--", "taut", "serve"];
    let run: Run = taut(words).output().unwrap().into();
    assert_eq!(run.exits(0).out, "two words\n");
    let place = place();
    let run: Run =
        place.command("call echo").arg(r#"{"text":"x"}"#).arg("good").output().unwrap().into();
    assert_eq!(run.exits(0).out, "x\n");
    let run: Run =
        place.command("call echo").arg(r#"{"text":"#).arg("good").output().unwrap().into();
    assert!(run.exits(2).err.contains("must be a JSON object"));
}

#[test]
fn help_is_a_command_too() {
    for (line, first) in
        [("help smoke", "Check whether"), ("help", "Try, check"), ("help call", "Call a tool")]
    {
        assert!(run(line, &[]).exits(0).out.starts_with(first), "{line}");
    }
    run("help nonsense", &[]).exits(2);
}

/// Who parses the output finds a document, whatever was wrong.
/// Also T5.
#[test]
fn a_wrong_option_is_a_document_with_json() {
    for (line, said) in [
        ("smoke --json --nonsense", "unexpected argument '--nonsense' found"),
        ("call --json", "required arguments were not provided: <TOOL>"),
        ("list --json --timeout soon -- taut serve", "invalid value 'soon' for '--timeout <TIME>'"),
        ("servers --json --nonsense", "--nonsense"),
    ] {
        let run = run(line, &[]).exits(2);
        let json = run.json();
        assert_eq!((&json["exit"], &json["error"]["kind"]), (&2.into(), &"usage".into()), "{line}");
        let message = json["error"]["message"].as_str().unwrap();
        assert!(message.contains(said), "{line}: {message}");
        assert!(run.err.starts_with("error: "), "{line}: {}", run.err);
    }
    // Those of the server are its own.
    assert_eq!(run("smoke --nonsense -- taut serve --json", &[]).exits(2).out, "");
}

#[test]
fn a_slip_of_a_letter_is_put_right_wherever_words_are_known() {
    let place = place();
    told(
        &place,
        &[
            ("list tool", "there is no server \"tool\"; did you mean tools?\n"),
            ("list tool good", "try: taut list tools good\n"),
            ("prompt greet nam=x good", "there is no argument nam; did you mean name?"),
            ("list --only ehco good", "the server has no \"ehco\"; did you mean echo?\n"),
        ],
    );
}

#[test]
// About Unix itself: a shell stands in the folder.
#[cfg(unix)]
fn a_folder_that_is_gone_is_said_to_be() {
    let place = place();
    let folder = place.project().join("gone");
    let line = "mkdir gone && cd gone && rmdir ../gone && taut smoke -- taut serve";
    let mut shell = Command::new("sh");
    let from = place.command("");
    shell.args(["-c", line]).current_dir(place.project()).env_clear();
    shell.envs(from.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let run: Run = shell.output().unwrap().into();
    let said = "error: the folder that this is started in no longer exists\n  try: cd to another";
    assert!(!folder.exists() && run.exits(2).err.starts_with(said));
}

/// One of them whole: nothing cut, every argument with its words.
#[test]
fn one_thing_of_a_server_is_shown_whole() {
    let run = demo("list --only add").exits(0);
    assert_eq!(
        run.out,
        "add\nAdd two numbers.\nit takes:\n  a: number  The first number.\n  b: number  The second \
         number.\nit returns:\n  sum: number  The sum.\nit says of itself: only reads, reaches nothing \
         beyond itself\n"
    );
    assert!(demo("list prompts --only greet").exits(0).out.contains("it takes:\n  name"));
    assert!(demo("list --only demo://readme").exits(0).out.starts_with("demo://readme\n"));
    let json = demo("list --only add --json").exits(0).json();
    let names = json.as_object().unwrap().keys().map(String::as_str);
    assert_eq!(names.collect::<Vec<_>>(), ["tools"]);
    assert_eq!(json["tools"].as_array().unwrap().len(), 1);
}
