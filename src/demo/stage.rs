//! Who plays in a story: the controller, which may be away for a while, and the parts of the world that go on beside it.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use tokio::task::JoinHandle;

use crate::actors::observation::Observation;
use crate::demo::life::Life;
use sandbox::kubernetes::KubernetesStandIn;
use sandbox::world::World;

/// A controller between its lives, or in one.
#[derive(Default)]
pub struct Controller(Option<Life>);

impl Controller {
    /// Begins a life, with stand-ins in place of these hosts.
    pub async fn start(
        &mut self,
        world: &World,
        settings: &[(&str, &str)],
        stand_ins: BTreeMap<String, SocketAddr>,
    ) -> io::Result<()> {
        self.0 = Some(Life::start_among(world, settings, stand_ins).await?);
        Ok(())
    }

    pub const fn is_away(&self) -> bool {
        self.0.is_none()
    }

    /// What it shows of itself; nothing while it is away.
    pub async fn observe(&self) -> Observation {
        match &self.0 {
            Some(life) => life.observe().await,
            None => Observation::default(),
        }
    }

    /// The address of its status page.
    pub fn page(&self) -> String {
        self.0.as_ref().map_or_else(String::new, |life| format!("http://{}/", life.address()))
    }

    /// Ends its life in the middle of whatever it is doing.
    pub fn kill(&mut self) -> io::Result<()> {
        self.0.take().map_or(Ok(()), Life::kill)
    }

    /// Ends its life in order.
    pub fn stop(self) -> io::Result<()> {
        self.0.map_or(Ok(()), Life::stop)
    }
}

/// A part of the world that goes on by itself, until this is dropped.
pub struct Part(JoinHandle<()>);

impl Part {
    #[expect(clippy::disallowed_methods, reason = "part of the world that the demo plays; ended with it")]
    pub fn play(part: impl Future<Output = ()> + 'static) -> Self {
        Self(actix::spawn(part))
    }

    /// What a cluster does by itself.
    pub fn cluster(cluster: &KubernetesStandIn) -> Self {
        let cluster = cluster.clone();
        Self::play(async move { cluster.run_controller().await })
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.0.abort();
    }
}
