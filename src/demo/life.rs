//! One life of the real controller, in a thread and an actix system of its own, so that it can be ended like a process: in
//! order, or in the middle of whatever it is doing.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use actix::Addr;
use tokio::sync::oneshot;

use crate::actors::message::Observe;
use crate::actors::observation::Observation;
use crate::actors::root::Root;
use crate::adapters::cloudfront::StaticCredentials;
use crate::adapters::kubernetes;
use crate::app::{self, Overrides};
use crate::config::{Inputs, Loaded, load, read_file};
use crate::http::Addresses;
use sandbox::world::World;

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Ordered,
    Killed,
}

pub struct Life {
    root: Addr<Root>,
    addresses: Addresses,
    end: oneshot::Sender<Ending>,
    thread: JoinHandle<()>,
}

impl Life {
    /// Starts a controller in `world`; returns when it serves its status page.
    ///
    /// # Errors
    /// When it does not start, in its own words.
    pub async fn start(world: &World, extra: &[(&str, &str)]) -> io::Result<Self> {
        Self::start_among(world, extra, BTreeMap::new()).await
    }

    /// The same, with stand-ins in place of these hosts, by name.
    ///
    /// # Errors
    /// See [`Life::start`].
    pub async fn start_among(
        world: &World,
        extra: &[(&str, &str)],
        stand_ins: BTreeMap<String, SocketAddr>,
    ) -> io::Result<Self> {
        let mut environment: BTreeMap<String, String> = world.environment().into_iter().collect();
        environment.extend(extra.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let inputs = Inputs {
            file: None,
            environment,
            flags: BTreeMap::new(),
            service_account_namespace: None,
            read: &read_file,
        };
        let Loaded { config, .. } = load(&inputs).map_err(|invalid| io::Error::other(invalid.to_string()))?;
        let kubernetes = kubernetes::Options { kubeconfig: Some(world.kubeconfig()), ..kubernetes::Options::default() };
        let credentials =
            StaticCredentials { access_key_id: world.access_key_id(), secret_access_key: world.secret_access_key() };
        let boards = world.boards.clone();
        let overrides = Overrides {
            kubernetes,
            aws: Some(credentials),
            boards,
            stand_ins: Some(stand_ins),
            ..Overrides::default()
        };
        let (started, born) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name("controller".to_owned()).spawn(move || {
            actix::System::new().block_on(async move {
                let running = match app::start(&config, overrides).await {
                    Ok(running) => running,
                    Err(error) => return drop(started.send(Err(io::Error::other(error.to_string())))),
                };
                let _ = started.send(Ok((running.root().clone(), running.addresses())));
                match ended.await {
                    Ok(Ending::Ordered) => running.stop().await,
                    // Dropping the system in the middle of everything is as near to `kill -9` as a thread can come.
                    Ok(Ending::Killed) | Err(_) => {}
                }
            });
        })?;
        let (root, addresses) = born.await.map_err(|_| io::Error::other("the controller ended at once"))??;
        Ok(Self { root, addresses, end, thread })
    }

    /// Where its status page is.
    pub fn address(&self) -> SocketAddr {
        self.addresses.page
    }

    /// Where requests of other programs are taken; `None`: nowhere.
    pub fn hooks(&self) -> Option<SocketAddr> {
        self.addresses.hooks
    }

    /// Where probes and metrics are.
    pub fn probes(&self) -> SocketAddr {
        self.addresses.probes
    }

    /// What it shows of itself; nothing if it does not answer.
    pub async fn observe(&self) -> Observation {
        self.root.send(Observe).await.unwrap_or_default()
    }

    /// Ends it in the middle of whatever it is doing.
    ///
    /// # Errors
    /// When it had panicked.
    pub fn kill(self) -> io::Result<()> {
        self.end_by(Ending::Killed)
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// When it had panicked.
    pub fn stop(self) -> io::Result<()> {
        self.end_by(Ending::Ordered)
    }

    fn end_by(self, ending: Ending) -> io::Result<()> {
        let Self { root, addresses: _, end, thread } = self;
        drop(root);
        // A life that has ended by itself does not listen any more.
        let _ = end.send(ending);
        thread.join().map_err(|_| io::Error::other("the controller panicked"))
    }
}
