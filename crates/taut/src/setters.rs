//! The setters of builders, as data: a line for each.
//!
//! Knows no builder. What a setter does beside putting one value into one field is written by hand.

/// Makes setters. Each puts its argument into a field, or what `=` says instead:
///
/// ```ignore
/// setters! { Builder<T>, [T: Clone];
///     /// Sets how long it may take.
///     timeout(limit: Duration) => settings.timeout;
///
///     /// Waits for as long as it takes.
///     without_timeout() => settings.timeout = None;
/// }
/// ```
macro_rules! setters {
    (@value $($value:ident)? = $made:expr) => { $made };
    (@value $value:ident) => { $value };
    ($Builder:ty $(, [$($generics:tt)*])?; $(
        $(#[$meta:meta])*
        $name:ident($($value:ident: $Type:ty)?) => $($field:ident).+ $(= $made:expr)?;
    )*) => {
        impl$(<$($generics)*>)? $Builder {$(
            $(#[$meta])*
            pub fn $name(mut self $(, $value: $Type)?) -> Self {
                self.$($field).+ = setters!(@value $($value)? $(= $made)?);
                self
            }
        )*}
    };
}
