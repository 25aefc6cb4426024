//! Changes of the default limits, so that nothing takes long.

use std::time::Duration;

use crawler_model::plugin::Limits;

pub(crate) fn as_usual(_: &mut Limits) {}

pub(crate) fn little_fuel(limits: &mut Limits) {
    limits.fuel = 10_000_000;
}

pub(crate) fn little_cpu(limits: &mut Limits) {
    limits.cpu = Duration::from_millis(50);
    limits.fuel = u64::MAX / 2;
}

pub(crate) fn little_memory(limits: &mut Limits) {
    limits.memory = 8 << 20;
}

pub(crate) fn little_item_bytes(limits: &mut Limits) {
    limits.item_bytes = 1 << 20;
}

pub(crate) fn much_memory(limits: &mut Limits) {
    limits.memory = 256 << 20;
}
