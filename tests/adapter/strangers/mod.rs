//! What people outside our trust can do: tenants of the cluster, senders of bytes, peers. Each test is one attack.

mod boards;
mod crowding;
mod doors;
mod egress;
mod hooks;
mod sites;

use std::net::SocketAddr;

use tokio::net::{TcpSocket, TcpStream};

async fn connect(from: &str, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(from.parse().unwrap())?;
    socket.connect(to).await
}
