//! What the watch of objects shows of itself.

use actix::{Handler, ResponseFuture};
use futures_util::future::join_all;

use super::{OBSERVE_WITHIN, ObjectWatcher};
use crate::actors::message::Observe;
use crate::actors::object::Tended;
use crate::actors::observation::Observation;

impl<T: Tended> ObjectWatcher<T> {
    /// The name of the API group of this number.
    pub(super) fn group(&self, number: usize) -> &str {
        self.tended.ports().objects.get(number).map_or("", |objects| objects.group())
    }

    /// What is wrong with the objects and their watches, in words.
    fn troubles(&self) -> Vec<String> {
        let name = T::NAME;
        let watches = self.groups.troubles();
        let watches = watches.map(|(number, why)| format!("{name}s of {} are not watched: {why}", self.group(number)));
        let unreadable = self.groups.unreadable().map(|(_, id, why)| format!("{id} cannot be read: {why}"));
        let hidden = self.groups.hidden().map(|(number, id)| {
            format!(
                "{id} of {} does not count: an earlier group has one of this name. Delete one of them",
                self.group(number)
            )
        });
        let alone = self.shell.machine().nursery().left_alone();
        let alone = alone.map(|(id, why)| format!("{id} is left alone for a while: {why}"));
        let crowded =
            self.places.words().map(|words| format!("of the {name}s {words}. Use a second allclear for some"));
        let misread =
            self.misread.iter().map(|(id, why)| format!("the annotation allclear.dev/resend of {id} is {why}"));
        watches.chain(unreadable).chain(hidden).chain(alone).chain(crowded).chain(misread).collect()
    }
}

impl<T: Tended> Handler<Observe> for ObjectWatcher<T> {
    type Result = ResponseFuture<Observation>;

    fn handle(&mut self, observe: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let children: Vec<_> =
            self.children.values().map(|child| child.send(observe).timeout(OBSERVE_WITHIN)).collect();
        let mut all = T::shown(None, self.troubles());
        Box::pin(async move {
            join_all(children).await.into_iter().flatten().for_each(|seen| all.absorb(seen));
            all
        })
    }
}
