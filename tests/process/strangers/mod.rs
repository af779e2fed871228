//! What people outside our trust can do: tenants of the cluster, senders of bytes, peers. Each test is one attack.

mod peers;
mod secrets;
mod sites;
mod texts;
