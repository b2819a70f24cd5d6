//! How a type of the protocol is written down: three small macros.
//!
//! Knows the form that all spec types share (wire names, revisions, unknown members kept); must
//! not know any one of them. Macros, because a hundred hand-written visitors would hide the one
//! thing worth reading: which member exists in which revision.

/// Defines objects of the protocol.
///
/// ```text
/// wire_struct! {
///     /// A tool.
///     pub struct Tool(needs name: String = "name") {     // required: `new`'s arguments
///         has input_schema: Schema = "inputSchema";      // always written; absent is the default
///         may title: String = "title" since V2025_06_18; // Option; null reads as None
///         num size: u64 = "size";                        // may, whose setter takes literals
///         any data: RawJson = "data" until V2025_11_25;  // may, but null is a value
///         may output: Schema = "outputSchema" when fits; // fn(&Schema, Target) -> bool decides
///     }
/// }
/// ```
///
/// `pub struct Text tagged "type" = "text" (…)` writes that member first and checks it.
/// Each type gets `new`, a chainable setter per optional member, `Deserialize`, `Serialize`
/// (everything), `WriteJson` (what a revision knows), and `extra` for members it does not know.
macro_rules! wire_struct {
    (
        $(
            $(#[$attr:meta])*
            pub struct $Name:ident $(tagged $tag:literal = $kind:literal)? (
                $( $(#[$nattr:meta])* $nhow:ident $need:ident : $Need:ty = $nwire:literal ),* $(,)?
            ) {
                $(
                    $(#[$oattr:meta])* $how:ident $opt:ident : $Opt:ty = $wire:literal
                    $(since $since:ident)? $(until $until:ident)? $(when $when:path)? ;
                )*
            }
        )+
    ) => {
        $(
            $(#[$attr])*
            #[derive(Clone, Debug, PartialEq)]
            #[non_exhaustive]
            pub struct $Name {
                $( $(#[$nattr])* pub $need: $Need, )*
                $( $(#[$oattr])* pub $opt: $crate::mcp::macros::wire_struct!(@type $how $Opt), )*
                /// Members this version of taut does not know, kept as they came.
                pub extra: $crate::mcp::extra::Extra,
            }

            impl $Name {
                /// Starts from what the protocol requires; the rest is set by chaining.
                #[must_use]
                pub fn new($( $need: $crate::mcp::macros::wire_struct!(@arg $nhow $Need) ),*) -> Self {
                    Self {
                        $( $need: $need.into(), )*
                        $( $opt: Default::default(), )*
                        extra: $crate::mcp::extra::Extra::default(),
                    }
                }

                $(
                    $(#[$oattr])*
                    #[must_use]
                    pub fn $opt(
                        mut self,
                        $opt: $crate::mcp::macros::wire_struct!(@arg $how $Opt),
                    ) -> Self {
                        self.$opt = $crate::mcp::macros::wire_struct!(@set $how $opt.into());
                        self
                    }
                )*
            }

            impl<'de> $crate::json::read::FromMembers<'de> for $Name {
                const EXPECTED: &'static str = concat!("a ", stringify!($Name), " object");

                fn from_members<A: serde::de::MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
                    $( let mut $need: Option<$Need> = None; )*
                    $( let mut $opt: Option<$Opt> = None; )*
                    let mut extra = $crate::mcp::extra::Extra::default();
                    while let Some($crate::json::read::Name(name)) = map.next_key()? {
                        match &*name {
                            $( $tag => $crate::json::read::fixed_member(&mut map, $tag, $kind)?, )?
                            $( $nwire => $need = Some(map.next_value()?), )*
                            $( $wire => $opt = $crate::mcp::macros::wire_struct!(@read $how map), )*
                            _ => { extra.insert(name.into_owned(), map.next_value()?); }
                        }
                    }
                    Ok(Self {
                        $( $need: $need
                            .ok_or_else(|| <A::Error as serde::de::Error>::missing_field($nwire))?, )*
                        $( $opt: $crate::mcp::macros::wire_struct!(@keep $how $opt), )*
                        extra,
                    })
                }
            }

            $crate::mcp::macros::read_members!($Name);

            $crate::mcp::write::serialize_any!($Name);

            impl $crate::mcp::write::WriteJson for $Name {
                #[allow(unused_variables, reason = "a type without members has no use for the target")]
                fn write_json(&self, target: $crate::mcp::write::Target, out: &mut Vec<u8>) {
                    let mut object = $crate::json::ObjectWriter::new(out);
                    $( object.raw(concat!(",\"", $tag, "\":\"", $kind, "\"")); )?
                    $( self.$need.write_json(target, object.raw(concat!(",\"", $nwire, "\":"))); )*
                    $(
                        if let Some(value) = $crate::mcp::macros::wire_struct!(@peek $how self.$opt)
                            $( && target.since($crate::mcp::revision::Revision::$since) )?
                            $( && target.until($crate::mcp::revision::Revision::$until) )?
                            $( && $when(value, target) )?
                        {
                            value.write_json(target, object.raw(concat!(",\"", $wire, "\":")));
                        }
                    )*
                    // `extra` is open to callers; a member written twice would be no valid object.
                    let known: &[&str] = &[$($tag,)? $($nwire,)* $($wire,)*];
                    for (name, value) in &self.extra {
                        if !known.contains(&name.as_str()) {
                            value.write_json(target, object.member(name));
                        }
                    }
                    object.end();
                }
            }
        )+
    };

    (@type has $T:ty) => { $T };
    (@type $how:ident $T:ty) => { Option<$T> };
    (@arg num $T:ty) => { $T };
    (@arg $how:ident $T:ty) => { impl Into<$T> };
    (@set has $value:expr) => { $value };
    (@set $how:ident $value:expr) => { Some($value) };
    (@read any $map:ident) => { Some($map.next_value()?) };
    (@read $how:ident $map:ident) => { $map.next_value()? };
    (@keep has $value:expr) => { $value.unwrap_or_default() };
    (@keep $how:ident $value:expr) => { $value };
    (@peek has $value:expr) => { Some(&$value) };
    (@peek $how:ident $value:expr) => { $value.as_ref() };
}
pub(super) use wire_struct;

/// Defines a set of words that may grow: one that taut does not know is kept in `Other`.
macro_rules! wire_enum {
    (
        $(#[$attr:meta])*
        pub enum $Name:ident { $( $(#[$vattr:meta])* $Variant:ident = $wire:literal ),* $(,)? }
    ) => {
        $(#[$attr])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $Name {
            $( $(#[$vattr])* $Variant, )*
            /// A word this version of taut does not know.
            Other(Box<str>),
        }

        impl $Name {
            /// The word on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$Variant => $wire, )*
                    Self::Other(word) => word,
                }
            }

            /// Whether this version of taut knows the word.
            #[must_use]
            pub fn is_known(&self) -> bool {
                !matches!(self, Self::Other(_))
            }
        }

        impl From<&str> for $Name {
            fn from(word: &str) -> Self {
                match word {
                    $( $wire => Self::$Variant, )*
                    _ => Self::Other(word.into()),
                }
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $Name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let $crate::json::read::Name(word) = serde::Deserialize::deserialize(deserializer)?;
                Ok(Self::from(&*word))
            }
        }

        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl $crate::mcp::write::WriteJson for $Name {
            fn write_json(&self, _: $crate::mcp::write::Target, out: &mut Vec<u8>) {
                match self {
                    $( Self::$Variant => out.extend_from_slice(concat!("\"", $wire, "\"").as_bytes()), )*
                    Self::Other(word) => $crate::json::quote(out, word),
                }
            }
        }
    };
}
pub(super) use wire_enum;

/// Defines objects told apart by `type`; an unknown kind is kept whole in `Other`.
///
/// `pub enum Content or stand_in` has a `fn stand_in(&self, Target) -> Option<TextContent>`: what is
/// written instead where a revision does not know the kind.
macro_rules! wire_union {
    (
        $(#[$attr:meta])*
        pub enum $Name:ident $(or $stand_in:ident)? {
            $( $(#[$vattr:meta])* $Variant:ident($T:ty) = $tag:literal ),* $(,)?
        }
    ) => {
        $(#[$attr])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum $Name {
            $( $(#[$vattr])* $Variant($T), )*
            /// A kind this version of taut does not know, kept as it came.
            Other(serde_json::Value),
        }

        $crate::mcp::macros::variants!($Name $(, $stand_in)?: $($Variant($T)),*);

        impl<'de> $crate::json::read::FromMembers<'de> for $Name {
            const EXPECTED: &'static str = concat!("a ", stringify!($Name), " object");

            fn from_members<A: serde::de::MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
                $crate::json::read::read_tagged(map)
            }
        }

        $crate::mcp::macros::read_members!($Name);

        impl<'de> $crate::json::read::FromTagged<'de> for $Name {
            fn from_tagged<A: serde::de::MapAccess<'de>>(
                tag: &str,
                map: A,
            ) -> Result<Self, A::Error> {
                use $crate::json::read::{FromMembers, unknown_kind};
                match tag {
                    $( $tag => <$T>::from_members(map).map(Self::$Variant), )*
                    _ => unknown_kind(tag, map).map(Self::Other),
                }
            }
        }

        $crate::mcp::write::serialize_any!($Name);
    };
}
pub(super) use wire_union;

/// `From` for the types that an enum holds, and `WriteJson`, which writes what `stand_in` returns
/// instead if it returns anything.
macro_rules! variants {
    ($Name:ident $(, $stand_in:ident)?: $($Variant:ident($T:ty)),* $(,)?) => {
        $(
            impl From<$T> for $Name {
                fn from(value: $T) -> Self {
                    Self::$Variant(value)
                }
            }
        )*

        impl $crate::mcp::write::WriteJson for $Name {
            fn write_json(&self, target: $crate::mcp::write::Target, out: &mut Vec<u8>) {
                $(
                    if let Some(text) = self.$stand_in(target) {
                        return text.write_json(target, out);
                    }
                )?
                match self {
                    $( Self::$Variant(value) => value.write_json(target, out), )*
                    Self::Other(value) => value.write_json(target, out),
                }
            }
        }
    };
}
pub(super) use variants;

/// `Deserialize` for types that are read from the members of an object.
macro_rules! read_members {
    ($($T:ty),*) => {$(
        impl<'de> serde::Deserialize<'de> for $T {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::json::read::FromMembers::from_object(deserializer)
            }
        }
    )*};
}
pub(super) use read_members;
