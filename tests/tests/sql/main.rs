//! Items in tables of databases: the same behaviour of SQLite, and of a real PostgreSQL and MariaDB.

mod changes;
mod check;
mod crawl;
mod feed;
mod history;
mod random;
mod server;
mod suite;
mod trouble;
