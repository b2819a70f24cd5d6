//! The process behind a session, where there can be one.
//!
//! On Unix that is `child.rs`. Elsewhere a client can only be connected to streams, and this is the
//! type of the child that there never is.

#[cfg(unix)]
pub(super) use super::child::Child;

#[cfg(not(unix))]
pub(super) use absent::Child;

#[cfg(not(unix))]
mod absent {
    use std::convert::Infallible;
    use std::future::Future;

    use crate::client::ladder::{Ended, Grace};
    use crate::error::Exit;

    /// A child that cannot be.
    pub(in crate::client) struct Child(Infallible);

    impl Child {
        pub(in crate::client) fn pid(&self) -> u32 {
            match self.0 {}
        }

        pub(in crate::client) fn exit(&self) -> Option<Exit> {
            match self.0 {}
        }

        pub(in crate::client) fn tail(&self) -> String {
            match self.0 {}
        }

        pub(in crate::client) fn stderr_closed(&self) -> bool {
            match self.0 {}
        }

        pub(in crate::client) fn end(
            &self,
            _: Grace,
        ) -> impl Future<Output = Ended> + Send + 'static + use<> {
            match self.0 {}
            #[allow(unreachable_code, reason = "names the type")]
            std::future::pending()
        }
    }
}
