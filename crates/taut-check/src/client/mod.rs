//! Clients: started once per scenario, with a server that is played to them.
pub(crate) struct Played<'a>(std::marker::PhantomData<&'a ()>);
