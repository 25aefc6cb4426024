//! Formats of the database of a frontier. A later one has what a program of before would misunderstand.

/// Format of a database whose items go to the sink in the data root alone.
pub(crate) const FORMAT: u32 = 1;
/// Format from the time on that another sink was named: each sink has a position and marks of its own. A program that
/// does not know it would deliver all items to one sink, and has to refuse the database.
pub(crate) const FORMAT_WITH_SINKS: u32 = 2;

/// Format from the time on that an item was told to sinks as removed: it is in the outbox, among items. A program that
/// does not know it would deliver it as an item, and has to refuse the database. Otherwise it is [`FORMAT_WITH_SINKS`].
pub(crate) const FORMAT_WITH_REMOVALS: u32 = 3;
/// Latest format that this program knows.
pub(crate) const LATEST_FORMAT: u32 = FORMAT_WITH_REMOVALS;

/// Returns true for a format that this program reads.
pub(crate) fn is_known_format(format: u32) -> bool {
    matches!(format, FORMAT | FORMAT_WITH_SINKS | FORMAT_WITH_REMOVALS)
}

/// Returns true for a format in which each sink has a position of its own.
pub(crate) fn has_positions(format: u32) -> bool {
    matches!(format, FORMAT_WITH_SINKS | FORMAT_WITH_REMOVALS)
}
