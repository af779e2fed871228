//! What people outside our trust can do: tenants of the cluster, senders of bytes, peers. Each test is one attack.

mod annotations;
mod boards;
mod lives;
mod room;
mod tenants;
