//! A frontier's knowledge of the hosts of its URLs.

use super::FrontierReader;
use crate::frontier::workbench::HostId;
use crate::frontier::{FrontierError, keys, records};
use crate::model::frontier::UnreachedHost;

impl FrontierReader {
    /// The host of a URL, where it could not be reached lately.
    pub(super) async fn unreached(
        &self,
        host: HostId,
    ) -> Result<Option<UnreachedHost>, FrontierError> {
        let record: Option<records::Host> = self.record(&keys::host(host), "host").await?;
        let record = record.filter(|record| record.run == self.run.0);
        Ok(record.and_then(|record| {
            let until = record.clock;
            record.trouble.map(|trouble| UnreachedHost {
                n: trouble.n,
                reason: trouble.reason,
                until,
            })
        }))
    }
}
