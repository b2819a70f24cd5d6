//! The other side of a connection, for calling and telling it.

use std::borrow::Cow;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::driver::{Close, Link};
use crate::ending::Ending;
use crate::error::{Error, Result};
use crate::rpc::{Failure, Patience};

/// How long a call may take unless it says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A handle on the other side. Clones are the same side.
#[derive(Clone)]
pub struct Remote {
    pub(super) link: Link,
}

impl Remote {
    /// Calls a method. Await the call for its result; dropping it withdraws the request.
    pub fn call<T: DeserializeOwned>(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: impl Serialize + Send + 'static,
    ) -> RemoteCall<T> {
        RemoteCall {
            link: self.link.clone(),
            method: method.into(),
            params: Box::new(params),
            patience: Some(Patience::new(TIMEOUT)),
            result: PhantomData,
        }
    }

    /// Tells the other side something.
    ///
    /// # Errors
    /// The connection is over, or `params` has no JSON form.
    pub fn notify(&self, method: &str, params: impl Serialize + Send) -> Result<()> {
        self.link.notify(None, method, Some(&params)).map_err(|error| {
            Error::from_send(method.to_owned().into(), error, || ended(&self.link))
        })
    }

    /// Closes our end, after what is queued has been written.
    pub fn close(&self) {
        self.link.close(Close::Politely);
    }

    /// Waits for the end of the connection.
    pub async fn ended(&self) -> Ending {
        self.link.ended().await
    }
}

/// The error for a call that the end of the connection has cut off.
fn ended(link: &Link) -> Error {
    Error::Ended(link.ending().unwrap_or(Ending::Eof))
}

/// A call about to be made; await it.
#[must_use = "a call does nothing until it is awaited"]
pub struct RemoteCall<T> {
    link: Link,
    method: Cow<'static, str>,
    params: Box<dyn crate::driver::Body>,
    patience: Option<Patience>,
    result: PhantomData<fn() -> T>,
}

setters! { RemoteCall<T>, [T];
    /// How long it may take. 60 s unless set.
    timeout(timeout: Duration) => patience = Some(Patience::new(timeout));

    /// Waits for as long as it takes.
    without_timeout() => patience = None;
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for RemoteCall<T> {
    type Output = Result<T>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { link, method, params, patience, .. } = self;
            let ended = || ended(&link);
            let read = |outcome: Result<&RawValue, Failure>| {
                outcome.map(|raw| serde_json::from_str(raw.get()))
            };
            let pending = link
                .call(None, &method, |_| Some(params), patience, None, read)
                .map_err(|error| Error::from_send(method.clone(), error, ended))?;
            match pending.await {
                Some(Ok(Ok(value))) => Ok(value),
                Some(Ok(Err(error))) => {
                    let what = format!("the result does not fit: {error}").into();
                    Err(Error::Violation { method, what })
                }
                Some(Err(failure)) => Err(Error::from_failure(method, failure, ended)),
                None => Err(ended()),
            }
        })
    }
}
