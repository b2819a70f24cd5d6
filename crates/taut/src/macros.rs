//! What would be written the same way in many places, as data: setters of builders, settings with their defaults, and
//! enums that say what their variants mean.
//!
//! Knows no type of ours. A setter that does more than put one value into one field is written by hand, and so is an
//! enum whose text depends on more than its fields.

/// Makes setters. Each puts its argument into a field, or what `=` says instead:
///
/// ```text
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

/// Makes a struct. The default of a field is what stands behind `=`, or that of its type.
///
/// ```text
/// with_defaults! {
///     pub struct Limits {
///         /// The longest message.
///         pub message: usize = 64 << 20,
///     }
/// }
/// ```
macro_rules! with_defaults {
    (@value $default:expr) => { $default };
    (@value) => { Default::default() };
    ($(#[$meta:meta])* $vis:vis struct $Name:ident {$(
        $(#[$about:meta])* $seen:vis $field:ident: $Field:ty $(= $default:expr)?,
    )*}) => {
        $(#[$meta])*
        $vis struct $Name {$( $(#[$about])* $seen $field: $Field, )*}

        impl Default for $Name {
            #[allow(unused_doc_comments, reason = "a field may have a condition beside its text")]
            fn default() -> Self {
                Self {$( $(#[$about])* $field: with_defaults!(@value $($default)?), )*}
            }
        }
    };
}

/// Makes an enum. The text of each variant is what `Display` shows; it names the variant's fields.
///
/// ```text
/// worded! {
///     pub enum Ending {
///         /// It was closed.
///         Closed = "closed by this side",
///         /// A signal has ended it.
///         Signal(number: i32) = "ended by signal {number}",
///     }
/// }
/// ```
macro_rules! worded {
    ($(#[$meta:meta])* $vis:vis enum $Name:ident {$(
        $(#[$doc:meta])*
        $Variant:ident $(($value:ident: $Value:ty))? $({$(
            $(#[$about:meta])* $field:ident: $Field:ty,
        )*})? = $words:literal,
    )*}) => {
        $(#[$meta])*
        $vis enum $Name {$(
            $(#[$doc])*
            $Variant $(($Value))? $({$( $(#[$about])* $field: $Field, )*})?,
        )*}

        impl std::fmt::Display for $Name {
            #[allow(unused_variables, reason = "not every text names every field")]
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {$(
                    Self::$Variant $(($value))? $({ $($field),* })? => write!(f, $words),
                )*}
            }
        }
    };
}
