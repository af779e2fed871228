//! What people outside our trust can do: tenants of the cluster, senders of bytes, peers. Each test is one attack.

mod boards;
mod crowding;
mod doors;
mod egress;
mod hooks;
mod sites;
