//! From the rows of the table to the settings: the macro that defines `CrawlSettings` and `SETTINGS`, and one macro
//! for each part of a row that depends on its kind.

/// Defines `CrawlSettings` with its accessors, and `SETTINGS`, from the rows of the table.
macro_rules! define {
    ($($field:ident: $kind:ident $args:tt {
        name: $name:literal,
        takes: $takes:literal,
        $(default: $default:expr,)?
        $(range: $range:expr,)?
        example: $example:expr,
        applies: $applies:ident,
        help: $help:literal,
        $(book: $book:literal,)?
    })*) => {
        /// Range and pace of a crawl. If a field is `None` or empty, the default of its row in the table holds;
        /// numbers are pieces, bytes or milliseconds (`_ms`).
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(default)]
        pub struct CrawlSettings {
            $(
                // A block of text, because a sentence of help is no Markdown.
                #[doc = concat!("Setting `", $name, "`:\n\n```text\n", $help, "\n```")]
                #[serde(skip_serializing_if = "Field::is_absent")]
                pub $field: field!($kind $args),
            )*
        }

        /// All settings of a crawl, in the order in which they are documented.
        pub static SETTINGS: &[Setting] = &[$(Setting {
            name: $name,
            field: stringify!($field),
            kind: kind!($kind),
            takes: $takes,
            default: first!($($default,)? or fallback!($kind $args)),
            range: first!($($range,)? or 0..=u64::MAX),
            example: $example,
            applies: Applies::$applies,
            help: $help,
            book: first!($($book,)? or ""),
            set: |settings, value| {
                settings.$field = parse!($kind value)?;
                Ok(())
            },
            measure: measure!($kind $field),
            value: value!($kind $field),
        },)*];

        impl CrawlSettings {
            $(accessor!($name $field $kind $args);)*

            /// Returns these settings, completed by those of `present`.
            pub fn over(self, present: Self) -> Self {
                Self {
                    $($field: self.$field.or_present(present.$field),)*
                }
            }
        }
    };
}

/// Returns the part of a row, or what stands for it if the row leaves it out.
macro_rules! first {
    (or $($otherwise:tt)*) => { $($otherwise)* };
    ($given:expr, or $($otherwise:tt)*) => { $given };
}

/// Type of a field.
macro_rules! field {
    (u32 $args:tt) => { Option<u32> };
    (u64 $args:tt) => { Option<u64> };
    (bytes $args:tt) => { Option<u64> };
    (time $args:tt) => { Option<u64> };
    (word ($type:ty)) => { Option<$type> };
    (text ($type:ty)) => { Option<$type> };
    (texts ($type:ty)) => { Vec<$type> };
    (list ($type:ty)) => { Vec<$type> };
}

/// Kind of a setting in the form of the interfaces.
macro_rules! kind {
    (u32) => {
        Kind::U32
    };
    (u64) => {
        Kind::U64
    };
    (bytes) => {
        Kind::Bytes
    };
    (time) => {
        Kind::Time
    };
    (word) => {
        Kind::Text
    };
    (text) => {
        Kind::Text
    };
    (texts) => {
        Kind::Texts
    };
    (list) => {
        Kind::List
    };
}

/// Default of a setting whose row does not describe it.
macro_rules! fallback {
    (u32 ($default:expr)) => {
        Fallback::Count($default as u64)
    };
    (u64 ($default:expr)) => {
        Fallback::Count($default)
    };
    (bytes ($default:expr)) => {
        Fallback::Bytes($default)
    };
    (time ($accessor:ident, $default:expr)) => {
        Fallback::Time($default)
    };
    ($kind:ident ($type:ty)) => {
        Fallback::Text(|| <$type>::default().to_string())
    };
}

/// Field that a value becomes.
macro_rules! parse {
    (word $value:ident) => {
        $value.text()
    };
    (text $value:ident) => {
        $value.text()
    };
    (texts $value:ident) => {
        $value.texts()
    };
    (list $value:ident) => {
        $value.texts()
    };
    ($number:ident $value:ident) => {
        $value.number()
    };
}

/// Function that returns the number whose range is checked.
macro_rules! measure {
    (word $field:ident) => {
        |_| None
    };
    (text $field:ident) => {
        |_| None
    };
    (texts $field:ident) => {
        |settings| Some(settings.$field.len() as u64)
    };
    (list $field:ident) => {
        |settings| Some(settings.$field.len() as u64)
    };
    (u32 $field:ident) => {
        |settings| settings.$field.map(u64::from)
    };
    ($number:ident $field:ident) => {
        |settings| settings.$field
    };
}

/// Function that returns the value of a setting, if it is set.
macro_rules! value {
    (word $field:ident) => {
        |settings| settings.$field.as_ref().map(Value::of_text)
    };
    (text $field:ident) => {
        |settings| settings.$field.as_ref().map(Value::of_text)
    };
    (texts $field:ident) => {
        |settings| Value::of_texts(&settings.$field)
    };
    (list $field:ident) => {
        |settings| Value::of_texts(&settings.$field)
    };
    (u32 $field:ident) => {
        |settings| settings.$field.map(u64::from).map(Value::Number)
    };
    ($number:ident $field:ident) => {
        |settings| settings.$field.map(Value::Number)
    };
}

/// Method that returns a setting or its default.
macro_rules! accessor {
    ($name:literal $field:ident u32 ($default:expr)) => {
        #[doc = concat!("Returns setting `", $name, "`.")]
        pub fn $field(&self) -> u32 {
            self.$field.unwrap_or($default)
        }
    };
    ($name:literal $field:ident time ($accessor:ident)) => {
        #[doc = concat!("Returns setting `", $name, "`, if it is set.")]
        pub fn $accessor(&self) -> Option<Duration> {
            self.$field.map(Duration::from_millis)
        }
    };
    ($name:literal $field:ident time ($accessor:ident, $default:expr)) => {
        #[doc = concat!("Returns setting `", $name, "`.")]
        pub fn $accessor(&self) -> Duration {
            self.$field.map_or($default, Duration::from_millis)
        }
    };
    ($name:literal $field:ident word ($type:ty)) => {
        #[doc = concat!("Returns setting `", $name, "`.")]
        pub fn $field(&self) -> $type {
            self.$field.unwrap_or_default()
        }
    };
    ($name:literal $field:ident text $args:tt) => {};
    ($name:literal $field:ident texts $args:tt) => {};
    ($name:literal $field:ident list $args:tt) => {};
    ($name:literal $field:ident $number:ident ($default:expr)) => {
        #[doc = concat!("Returns setting `", $name, "`.")]
        pub fn $field(&self) -> u64 {
            self.$field.unwrap_or($default)
        }
    };
}
