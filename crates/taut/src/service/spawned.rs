//! A command that speaks plain JSON-RPC on its stdin and stdout.
//!
//! Knows how to start one and how to end it; must not know what is said.

use std::sync::Arc;

use super::{Remote, Serve};
use crate::driver;
use crate::error::{Error, Result};
use crate::process::{
    Child, ChildOptions, Command, GracePeriods, PipeEvents, StartedChild, StdinGauge,
};

/// Nothing is made of what the pipes tell.
struct Unheard;

impl PipeEvents for Unheard {
    fn read(&self, _: usize) {}
    fn joined(&self, _: &Arc<StdinGauge>) {}
    fn stdin_unread(&self) {}
}

impl Serve {
    /// Starts a command and speaks JSON-RPC with it over its stdin and stdout; what it asks comes to this service. Each
    /// line of its stderr is logged, at the level ERROR under `taut::stderr`.
    ///
    /// [`Remote::close`] closes its stdin. When the connection is over, the process is given time to end, then signalled,
    /// then killed. It does not outlive the runtime.
    ///
    /// ```no_run
    /// # async fn example() -> taut::Result<()> {
    /// use taut::service::{RequestParams, ServiceRequest, serve};
    /// use taut::{Command, Reject};
    ///
    /// // The command asks nothing of us.
    /// let nothing = serve(async |method: String, _: RequestParams, _: ServiceRequest| {
    ///     Err::<(), _>(Reject::method_not_found(&method).into())
    /// });
    /// let calculator = nothing.spawn(Command::new("calculator").arg("--stdio")).await?;
    /// let sum: f64 = calculator.call("add", [2.0, 3.0]).await?;
    /// # let _ = sum;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The program cannot be started: [`Error::Spawn`].
    pub async fn spawn(&self, command: Command) -> Result<Remote> {
        let started = Child::spawn(&command, ChildOptions::default(), Arc::new(Unheard)).await;
        let StartedChild { child, stdout, stdin, .. } =
            started.map_err(|error| Error::Spawn(Arc::new(error)))?;
        let (link, service) = self.start(false);
        let (remote, options) = (service.remote.clone(), self.options);
        tokio::spawn(async move {
            let (service, never) = (Box::new(service), std::future::pending());
            driver::run(link, stdout, stdin, service, options, never).await;
            child.end(GracePeriods::default()).await;
        });
        Ok(remote)
    }
}
