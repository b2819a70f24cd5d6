//! What the tests of processes need of the system they run on, by the same names on each.
//!
//! Linux has a shell that takes the harness's greeting off a role's stdout. On Windows the role is played
//! before the harness starts. There are no signals there, so who is killed exits with code 1.
//!
//! The crate that includes this has a function `role` at its root.

#![allow(dead_code, reason = "each suite uses what it needs")]

#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;

/// The arguments with which a test binary plays its role and does nothing else.
const ROLE: [&str; 4] = ["--ignored", "--exact", "role", "--nocapture"];

// About Unix itself: signals, `/proc` and a shell. The module after it has the same names for Windows.
#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::io::Write as _;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    use rustix::process::{Pid, Signal, getpid, kill_process};

    /// How the end of a process is told that was killed.
    pub(crate) const KILLED: &str = "was killed by signal 9 (SIGKILL)";

    /// A program and its arguments that play a role in this binary. The harness greets on stdout, so
    /// that is opened anew on the way; `before` is done by the shell, because what is ignored stays so
    /// across exec.
    pub(crate) fn player(before: &str) -> (String, Vec<String>) {
        let run = super::ROLE.join(" ");
        let script = format!(r#"{before}exec 3>&1 >/dev/null; exec "$0" {run}"#);
        let binary = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
        ("sh".into(), vec!["-c".into(), script, binary])
    }

    /// The same as one command line, with the role in it.
    pub(crate) fn command_line(role: &str, (program, args): (String, Vec<String>)) -> Vec<String> {
        let before = ["env".to_owned(), format!("TAUT_ROLE={role}"), program];
        before.into_iter().chain(args).collect()
    }

    /// Makes a script that can be started. Another process writes it: a test that forks while this one writes
    /// would inherit the open file, and a file that somebody has open for writing cannot be started.
    pub(crate) fn write_script(path: &Path, text: &str) {
        let mut writer = Command::new("sh");
        writer.args(["-c", r#"cat > "$0" && chmod 755 "$0""#]).arg(path).stdin(Stdio::piped());
        let mut writer = writer.spawn().unwrap();
        writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(writer.wait().unwrap().success(), "{} was not written", path.display());
    }

    /// A role is always in the environment here.
    pub(crate) fn role_in_arguments() -> Option<String> {
        None
    }

    /// The harness has had its say on stdout by now; from here on that is the wire.
    pub(crate) fn take_wire() {
        let wire = File::options().write(true).open("/dev/fd/3").unwrap();
        rustix::stdio::dup2_stdout(&wire).unwrap();
    }

    /// Whether a process runs; a zombie does not.
    pub(crate) fn alive(pid: u32) -> bool {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        state.is_some_and(|state| state != 'Z' && state != 'X')
    }

    /// Kills a process, if it is there.
    pub(crate) fn kill(pid: u32) {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Ends this process as if it had been killed.
    pub(crate) fn kill_self() {
        kill_process(getpid(), Signal::KILL).unwrap();
    }

    /// Crashes.
    pub(crate) fn abort() {
        kill_process(getpid(), Signal::ABORT).unwrap();
    }

    /// Makes another process crash.
    pub(crate) fn crash(process: &mut Child) {
        let pid = i32::try_from(process.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::ABORT).unwrap();
    }

    /// Stops every thread until somebody lets them go on.
    pub(crate) fn stop() {
        kill_process(getpid(), Signal::STOP).unwrap();
    }

    /// The same to another process.
    pub(crate) fn stop_other(pid: u32) {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::STOP);
        }
    }

    fn null() -> File {
        File::options().read(true).write(true).open("/dev/null").unwrap()
    }

    pub(crate) fn close_stdin() {
        rustix::stdio::dup2_stdin(null()).unwrap();
    }

    pub(crate) fn close_stderr() {
        rustix::stdio::dup2_stderr(null()).unwrap();
    }

    /// Closes stdout and lives on.
    pub(crate) fn close_stdout_and_sleep() {
        use std::os::unix::process::CommandExt as _;
        // fd 3 is the wire, too.
        let _ = Command::new("sh").args(["-c", "exec 1>&- 3>&-; exec sleep 1000"]).exec();
    }

    /// A process that lives for ever and holds what it inherits.
    pub(crate) fn sleeper() -> Command {
        let mut command = Command::new("sleep");
        command.arg("1000");
        command
    }
}

#[cfg(windows)]
#[allow(unsafe_code, reason = "docs/decisions/0013-windows.md")]
mod windows {
    use std::os::windows::io::{AsRawHandle, FromRawHandle as _, OwnedHandle};
    use std::process::{Child, Command};

    use windows_sys::Win32::Foundation::{
        CloseHandle, HANDLE_FLAG_INHERIT, INVALID_HANDLE_VALUE, SetHandleInformation, WAIT_TIMEOUT,
    };
    use windows_sys::Win32::System::Console::{
        CTRL_C_EVENT, GenerateConsoleCtrlEvent, GetConsoleProcessList, GetConsoleWindow,
        GetStdHandle, STD_ERROR_HANDLE, STD_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE,
        SetConsoleCtrlHandler,
    };
    use windows_sys::Win32::System::Diagnostics::ToolHelp::{
        CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW,
        TH32CS_SNAPPROCESS,
    };
    use windows_sys::Win32::System::JobObjects::{
        AssignProcessToJobObject, CreateJobObjectW, JOBOBJECT_BASIC_ACCOUNTING_INFORMATION,
        JobObjectBasicAccountingInformation, QueryInformationJobObject,
    };
    use windows_sys::Win32::System::Threading::{
        OpenProcess, PROCESS_SYNCHRONIZE, PROCESS_TERMINATE, TerminateProcess, WaitForSingleObject,
    };

    pub(crate) const KILLED: &str = "exited with code 1";

    pub(crate) fn player(_: &str) -> (String, Vec<String>) {
        let binary = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
        (binary, super::ROLE.map(Into::into).to_vec())
    }

    /// There is no program `env`, so the role is the last argument.
    pub(crate) fn command_line(role: &str, (program, args): (String, Vec<String>)) -> Vec<String> {
        let last = format!("TAUT_ROLE={role}");
        [program].into_iter().chain(args).chain([last]).collect()
    }

    pub(crate) fn role_in_arguments() -> Option<String> {
        std::env::args().find_map(|arg| arg.strip_prefix("TAUT_ROLE=").map(str::to_owned))
    }

    pub(crate) fn take_wire() {}

    /// The C runtime calls what stands in this section before `main`, so stdout has no greeting of the
    /// harness: a server's first byte is its own, as everywhere.
    #[used]
    #[unsafe(link_section = ".CRT$XCU")]
    static BEFORE_MAIN: extern "C" fn() = before_main;

    /// Plays the role, if this process was started for one.
    extern "C" fn before_main() {
        let args: Vec<String> = std::env::args().skip(1).take(super::ROLE.len()).collect();
        if args == super::ROLE {
            let played = std::panic::catch_unwind(crate::role);
            std::process::exit(if played.is_ok() { 0 } else { 101 });
        }
    }

    fn open(pid: u32, access: u32) -> Option<OwnedHandle> {
        // SAFETY: takes numbers; the handle that it gives is ours alone.
        unsafe {
            let handle = OpenProcess(access, 0, pid);
            (!handle.is_null()).then(|| OwnedHandle::from_raw_handle(handle))
        }
    }

    pub(crate) fn alive(pid: u32) -> bool {
        // SAFETY: the handle is open.
        open(pid, PROCESS_SYNCHRONIZE).is_some_and(|process| unsafe {
            WaitForSingleObject(process.as_raw_handle(), 0) == WAIT_TIMEOUT
        })
    }

    pub(crate) fn kill(pid: u32) {
        if let Some(process) = open(pid, PROCESS_TERMINATE) {
            // SAFETY: the handle is open.
            unsafe { TerminateProcess(process.as_raw_handle(), 1) };
        }
    }

    pub(crate) fn kill_self() {
        kill(std::process::id());
    }

    pub(crate) fn abort() {
        std::process::abort();
    }

    /// As near as it gets: its work is cut off at once.
    pub(crate) fn crash(process: &mut Child) {
        process.kill().unwrap();
    }

    /// As near as it gets: it neither reads nor answers any more.
    pub(crate) fn stop() {
        sleep();
    }

    fn sleep() -> ! {
        loop {
            std::thread::sleep(std::time::Duration::from_secs(1_000));
        }
    }

    fn close(which: STD_HANDLE) {
        // SAFETY: nobody in a role uses the handle after it has closed it.
        unsafe { CloseHandle(GetStdHandle(which)) };
    }

    pub(crate) fn close_stdin() {
        close(STD_INPUT_HANDLE);
    }

    pub(crate) fn close_stderr() {
        close(STD_ERROR_HANDLE);
    }

    pub(crate) fn close_stdout_and_sleep() {
        close(STD_OUTPUT_HANDLE);
        sleep();
    }

    /// Whether this process has a console window.
    pub(crate) fn has_window() -> bool {
        // SAFETY: asks for a number.
        unsafe { !GetConsoleWindow().is_null() }
    }

    /// Lives through Ctrl-C. What this process starts does not inherit it.
    pub(crate) fn ignore_ctrl_c() {
        extern "system" fn taken(_: u32) -> i32 {
            1
        }
        // SAFETY: the function stays where it is.
        assert_ne!(unsafe { SetConsoleCtrlHandler(Some(taken), 1) }, 0);
    }

    /// Presses Ctrl-C in the console of this process.
    pub(crate) fn press_ctrl_c() {
        // SAFETY: takes two numbers.
        assert_ne!(unsafe { GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0) }, 0);
    }

    /// A job that ends nothing: it counts what a process and its descendants leave behind.
    pub(crate) struct Counted(OwnedHandle);

    impl Counted {
        /// Counts this process and what it starts from now on.
        pub(crate) fn new(process: &impl AsRawHandle) -> Self {
            // SAFETY: no attributes and no name; the handle that it gives is ours alone.
            let job = unsafe {
                let handle = CreateJobObjectW(std::ptr::null(), std::ptr::null());
                assert!(!handle.is_null());
                OwnedHandle::from_raw_handle(handle)
            };
            // SAFETY: both handles are open.
            let done =
                unsafe { AssignProcessToJobObject(job.as_raw_handle(), process.as_raw_handle()) };
            assert_ne!(done, 0, "{}", std::io::Error::last_os_error());
            Self(job)
        }

        /// How many run, and how many have run.
        pub(crate) fn processes(&self) -> (u32, u32) {
            let mut info = JOBOBJECT_BASIC_ACCOUNTING_INFORMATION::default();
            // SAFETY: the handle is open, and the class belongs to this structure, which has that size.
            let done = unsafe {
                QueryInformationJobObject(
                    self.0.as_raw_handle(),
                    JobObjectBasicAccountingInformation,
                    (&raw mut info).cast(),
                    size_of_val(&info) as u32,
                    std::ptr::null_mut(),
                )
            };
            assert_ne!(done, 0, "{}", std::io::Error::last_os_error());
            (info.ActiveProcesses, info.TotalProcesses)
        }
    }

    /// The system's list of processes: the number of each, and of the one that started it.
    pub(crate) fn all_processes() -> Vec<(u32, u32)> {
        let mut entry =
            PROCESSENTRY32W { dwSize: size_of::<PROCESSENTRY32W>() as u32, ..Default::default() };
        // SAFETY: the handle that it gives is ours alone; the structure says its size.
        unsafe {
            let list = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
            assert_ne!(list, INVALID_HANDLE_VALUE);
            let list = OwnedHandle::from_raw_handle(list);
            let mut all = Vec::new();
            let mut more = Process32FirstW(list.as_raw_handle(), &raw mut entry);
            while more != 0 {
                all.push((entry.th32ProcessID, entry.th32ParentProcessID));
                more = Process32NextW(list.as_raw_handle(), &raw mut entry);
            }
            all
        }
    }

    /// The processes that share this one's console; none if there is no console.
    pub(crate) fn console_processes() -> Vec<u32> {
        let mut list = vec![0; 64];
        // SAFETY: the list has room for as many as it is said to have.
        let count = unsafe { GetConsoleProcessList(list.as_mut_ptr(), list.len() as u32) };
        list.truncate(count as usize);
        list
    }

    /// Lets every process inherit this handle that is started with a wish to inherit.
    pub(crate) fn make_inheritable(handle: &impl AsRawHandle) {
        // SAFETY: the handle is open for as long as it is borrowed.
        let done = unsafe {
            SetHandleInformation(handle.as_raw_handle(), HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT)
        };
        assert_ne!(done, 0);
    }

    pub(crate) fn sleeper() -> Command {
        let (program, args) = player("");
        let mut command = Command::new(program);
        command.args(args).env("TAUT_ROLE", "sleeper");
        command
    }
}
