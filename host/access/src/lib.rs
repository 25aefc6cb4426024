//! Access: who may call, and the record of who did what.
//!
//! ```text
//! token     the secret that a caller shows, and its hash
//! record    what the store keeps of a token; never the secret
//! registry  gives tokens out, lists them and takes them back
//! audit     the record of who did what, in the data root
//! gate      admits callers by the tokens that they show, from a view of the store in memory
//! node      nodes as certificates and join tokens name them
//! ca        the cluster's own CA, which issues the certificates of nodes
//! joins     join tokens, each of which buys nodes a certificate
//! revoked_nodes  nodes whose certificates are void
//! ```
//!
//! The rights of a token are [`crawler_model::access::Grants`]. The crate of the calls decides which right a call
//! needs.

pub mod audit;
pub mod ca;
pub mod gate;
pub mod joins;
pub mod node;
mod record;
pub mod registry;
pub mod revoked_nodes;
mod token;

pub use record::TokenRecord;
pub use token::{NodeSecret, SecretHash, Token};
