//! Starting a process inside a job object, with no handle but the three it is meant to have.
//!
//! The job and the list of handles are given to the system together with the process, so there is no
//! moment at which it runs outside of the job, or inherits what another thread has just opened.

use std::ffi::{OsStr, OsString, c_void};
use std::io;
use std::mem::{size_of, size_of_val};
use std::os::windows::ffi::OsStrExt as _;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{HANDLE, TRUE, WAIT_OBJECT_0, WAIT_TIMEOUT};
use windows_sys::Win32::System::IO::CancelIoEx;
use windows_sys::Win32::System::JobObjects::{
    CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOBOBJECT_BASIC_ACCOUNTING_INFORMATION,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectBasicAccountingInformation,
    JobObjectExtendedLimitInformation, QueryInformationJobObject, SetInformationJobObject,
    TerminateJobObject,
};
use windows_sys::Win32::System::Threading::{
    CREATE_NO_WINDOW, CREATE_UNICODE_ENVIRONMENT, CreateProcessW, DeleteProcThreadAttributeList,
    EXTENDED_STARTUPINFO_PRESENT, GetExitCodeProcess, INFINITE, InitializeProcThreadAttributeList,
    LPPROC_THREAD_ATTRIBUTE_LIST, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
    PROC_THREAD_ATTRIBUTE_JOB_LIST, PROCESS_INFORMATION, STARTF_USESTDHANDLES, STARTUPINFOEXW,
    UpdateProcThreadAttribute, WaitForSingleObject,
};

use super::{check, duplicate};

/// The processes that descend from one that was started in it. They end when this is dropped, and
/// when this process ends in whatever way.
#[derive(Debug)]
pub(crate) struct JobObject(OwnedHandle);

impl JobObject {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no attributes and no name; the result is checked.
        let handle = unsafe { CreateJobObjectW(null(), null()) };
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just made this handle, and nobody else knows it.
        let job = Self(unsafe { OwnedHandle::from_raw_handle(handle) });
        job.limit(JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE)?;
        Ok(job)
    }

    /// From now on its processes outlive it.
    pub(crate) fn release(&self) -> io::Result<()> {
        self.limit(0)
    }

    fn limit(&self, flags: u32) -> io::Result<()> {
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = flags;
        let size = size_of_val(&limits) as u32;
        // SAFETY: the handle is open, and the class belongs to this structure.
        check(unsafe {
            SetInformationJobObject(
                self.0.as_raw_handle(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast(),
                size,
            )
        })
    }

    /// Ends all its processes, with this exit code. They may be seen for a moment longer.
    pub(crate) fn terminate(&self, code: u32) -> io::Result<()> {
        // SAFETY: the handle is open.
        check(unsafe { TerminateJobObject(self.0.as_raw_handle(), code) })
    }

    /// How many processes it has.
    pub(crate) fn processes(&self) -> io::Result<u32> {
        let mut info = JOBOBJECT_BASIC_ACCOUNTING_INFORMATION::default();
        let size = size_of_val(&info) as u32;
        // SAFETY: the handle is open, and the class belongs to this structure, which has that size.
        check(unsafe {
            QueryInformationJobObject(
                self.0.as_raw_handle(),
                JobObjectBasicAccountingInformation,
                (&raw mut info).cast(),
                size,
                null_mut(),
            )
        })?;
        Ok(info.ActiveProcesses)
    }
}

/// What is started.
pub(crate) struct Program<'a> {
    /// The file, with its directory.
    pub(crate) path: &'a OsStr,
    /// What the program takes apart into its arguments.
    pub(crate) command_line: &'a [u16],
    /// `NAME=value`, in the order that the system wants.
    pub(crate) env: &'a [OsString],
    pub(crate) directory: Option<&'a OsStr>,
    pub(crate) stdin: BorrowedHandle<'a>,
    pub(crate) stdout: BorrowedHandle<'a>,
    pub(crate) stderr: BorrowedHandle<'a>,
}

/// Starts a process in the job, without a window: the process and its id.
pub(crate) fn start(program: &Program<'_>, job: &JobObject) -> io::Result<(OwnedHandle, u32)> {
    let path = zero_ended(program.path.encode_wide())?;
    let mut command_line = zero_ended(program.command_line.iter().copied())?;
    let directory = program.directory.map(|text| zero_ended(text.encode_wide())).transpose()?;
    let mut env = Vec::new();
    for variable in program.env {
        env.extend(zero_ended(variable.encode_wide())?);
    }
    // The end of the block, and of a block without variables.
    env.extend(if env.is_empty() { &[0, 0][..] } else { &[0][..] });

    // The system wants them inheritable, and passes on the ones in the list alone.
    let ends = [program.stdin, program.stdout, program.stderr]
        .map(|end| duplicate(end.as_raw_handle(), true));
    let [stdin, stdout, stderr] = ends;
    let ends = [stdin?, stdout?, stderr?];
    let handles: [HANDLE; 3] = [0, 1, 2].map(|n: usize| ends[n].as_raw_handle());
    let jobs: [HANDLE; 1] = [job.0.as_raw_handle()];
    let mut attributes = Attributes::new(2)?;
    attributes.set(PROC_THREAD_ATTRIBUTE_HANDLE_LIST, &handles)?;
    attributes.set(PROC_THREAD_ATTRIBUTE_JOB_LIST, &jobs)?;

    let mut info = STARTUPINFOEXW::default();
    info.StartupInfo.cb = size_of::<STARTUPINFOEXW>() as u32;
    info.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
    [info.StartupInfo.hStdInput, info.StartupInfo.hStdOutput, info.StartupInfo.hStdError] = handles;
    info.lpAttributeList = attributes.list();
    let mut made = PROCESS_INFORMATION::default();
    // SAFETY: every text ends with a zero and outlives the call, as do the attributes and what they
    // point to; the command line may be written to; the flags say what the environment and the
    // information are.
    check(unsafe {
        CreateProcessW(
            path.as_ptr(),
            command_line.as_mut_ptr(),
            null(),
            null(),
            TRUE,
            EXTENDED_STARTUPINFO_PRESENT | CREATE_UNICODE_ENVIRONMENT | CREATE_NO_WINDOW,
            env.as_ptr().cast(),
            directory.as_ref().map_or(null(), |text| text.as_ptr()),
            (&raw const info).cast(),
            &raw mut made,
        )
    })?;
    // SAFETY: the call has just made both handles, and nobody else knows them.
    let (process, _thread) = unsafe {
        (OwnedHandle::from_raw_handle(made.hProcess), OwnedHandle::from_raw_handle(made.hThread))
    };
    Ok((process, made.dwProcessId))
}

/// The text for the system. A zero inside would cut it short there.
fn zero_ended(text: impl Iterator<Item = u16>) -> io::Result<Vec<u16>> {
    let mut wide: Vec<u16> = text.collect();
    if wide.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a zero byte in the command"));
    }
    wide.push(0);
    Ok(wide)
}

/// What is said about a process besides the usual.
struct Attributes(Vec<usize>);

impl Attributes {
    fn new(count: u32) -> io::Result<Self> {
        let mut size = 0;
        // SAFETY: without a list the call tells the size that one takes, and fails for that.
        unsafe { InitializeProcThreadAttributeList(null_mut(), count, 0, &mut size) };
        // Numbers as wide as a pointer, because the list has pointers in it.
        let mut list = Self(vec![0; size.div_ceil(size_of::<usize>())]);
        // SAFETY: the list has the size that was asked for.
        check(unsafe { InitializeProcThreadAttributeList(list.list(), count, 0, &mut size) })
            // A list that was not made must not be taken down.
            .inspect_err(|_| list.0.clear())?;
        Ok(list)
    }

    fn list(&mut self) -> LPPROC_THREAD_ATTRIBUTE_LIST {
        self.0.as_mut_ptr().cast()
    }

    /// The caller keeps `handles` where they are until the process is started.
    fn set(&mut self, attribute: u32, handles: &[HANDLE]) -> io::Result<()> {
        let (at, size) = (handles.as_ptr().cast::<c_void>(), size_of_val(handles));
        // SAFETY: the list is made, and has room: no more are set than it was made for.
        check(unsafe {
            UpdateProcThreadAttribute(
                self.list(),
                0,
                attribute as usize,
                at,
                size,
                null_mut(),
                null(),
            )
        })
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            // SAFETY: the list is made.
            unsafe { DeleteProcThreadAttributeList(self.list()) };
        }
    }
}

/// Waits until the process has ended.
pub(crate) fn wait(process: &impl AsHandle) -> io::Result<()> {
    // SAFETY: the handle is open for as long as it is borrowed.
    match unsafe { WaitForSingleObject(process.as_handle().as_raw_handle(), INFINITE) } {
        WAIT_OBJECT_0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// With what code it ended; `None` if it still runs.
pub(crate) fn exit_code(process: &impl AsHandle) -> io::Result<Option<u32>> {
    let process = process.as_handle().as_raw_handle();
    let mut code = 0;
    // SAFETY: the handle is open for as long as it is borrowed, and `code` outlives the call.
    unsafe {
        if WaitForSingleObject(process, 0) == WAIT_TIMEOUT {
            return Ok(None);
        }
        check(GetExitCodeProcess(process, &mut code))?;
    }
    Ok(Some(code))
}

/// Ends the reads and writes on this handle that threads are waiting in. They fail.
pub(crate) fn cancel(handle: &impl AsHandle) {
    // SAFETY: the handle is open for as long as it is borrowed. That there is nothing to end is told as
    // an error, and is none.
    unsafe { CancelIoEx(handle.as_handle().as_raw_handle(), null()) };
}
