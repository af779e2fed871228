//! The objects of one of our kinds, by what the watches of all their places say: API groups, and namespaces where those are listed.
//! Where two groups have an object of the same name, that of the first one counts. So a Pipeline that is moved from
//! `pipelines.weave.works` by applying it once more under our group does not promote everything twice.
//!
//! Not for how objects are watched.

use std::collections::{BTreeMap, BTreeSet};

use crate::kept::{Kept, ObjectSight};
use kernel::answer::PortError;
use kernel::unreadable::Unreadable;

/// The objects of all groups, by what their watches have said.
#[derive(Clone, Debug)]
pub struct Groups<T: Kept>(Vec<Group<T>>);

/// The objects of one group.
#[derive(Clone, Debug)]
struct Group<T: Kept> {
    /// All that exist, with what the watch has shown of those that do not count.
    objects: BTreeMap<T::Id, Option<Box<T>>>,
    unreadable: BTreeMap<T::Id, Unreadable>,
    /// Those that the listing under way has not shown yet.
    unseen: Option<BTreeSet<T::Id>>,
    trouble: Option<String>,
    synced: bool,
}

/// The report about the object that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said<T: Kept> {
    /// It is like this now.
    Seen(Box<T>),
    /// It is gone, in every group.
    Gone(T::Id),
    /// It cannot be read, and why.
    Unreadable(T::Id, Unreadable),
    /// It does not count, because an earlier group has one of this name.
    Hidden(T::Id),
}

impl<T: Kept> Default for Group<T> {
    fn default() -> Self {
        let (objects, unreadable) = (BTreeMap::new(), BTreeMap::new());
        Self { objects, unreadable, unseen: None, trouble: None, synced: false }
    }
}

impl<T: Kept> Groups<T> {
    /// So many groups, of which nothing is known.
    pub fn new(count: usize) -> Self {
        Self((0..count).map(|_| Group::default()).collect())
    }

    /// Whether everything was listed once.
    pub fn are_synced(&self) -> bool {
        self.0.iter().all(|group| group.synced)
    }

    /// Objects that cannot be read, and why; and the group they are in.
    pub fn unreadable(&self) -> impl Iterator<Item = (usize, &T::Id, &Unreadable)> {
        let all = self.0.iter().enumerate();
        all.flat_map(|(number, group)| group.unreadable.iter().map(move |(id, why)| (number, id, why)))
    }

    /// Why a group is not watched at present.
    pub fn troubles(&self) -> impl Iterator<Item = (usize, &str)> {
        self.0.iter().enumerate().filter_map(|(number, group)| Some((number, group.trouble.as_deref()?)))
    }

    /// Objects that do not count, and the group they are in.
    pub fn hidden(&self) -> impl Iterator<Item = (usize, &T::Id)> {
        let all = self.0.iter().enumerate();
        all.flat_map(move |(number, group)| {
            group.objects.keys().filter(move |id| self.has_earlier(number, id)).map(move |id| (number, id))
        })
    }

    /// The group whose object of this name counts.
    pub fn of(&self, id: &T::Id) -> Option<usize> {
        self.0.iter().position(|group| group.objects.contains_key(id))
    }

    fn has_earlier(&self, number: usize, id: &T::Id) -> bool {
        self.of(id).is_some_and(|first| first < number)
    }

    /// Takes in what the watch of a group has said.
    pub fn hear(&mut self, number: usize, sight: ObjectSight<T>) -> Vec<Said<T>> {
        let Some(group) = self.0.get_mut(number) else { return Vec::new() };
        match sight {
            ObjectSight::Restarted => {
                group.unseen = Some(group.objects.keys().cloned().collect());
                Vec::new()
            }
            ObjectSight::Seen(object) => {
                group.unreadable.remove(object.id());
                self.there(number, object.id().clone(), Ok(object))
            }
            ObjectSight::Unreadable(id, why) => {
                group.unreadable.insert(id.clone(), why.clone());
                self.there(number, id, Err(why))
            }
            ObjectSight::Gone(id) => self.gone(number, &id),
            ObjectSight::Synced => {
                group.synced = true;
                group.trouble = None;
                let gone = group.unseen.take().unwrap_or_default();
                gone.iter().flat_map(|id| self.gone(number, id)).collect()
            }
            ObjectSight::Trouble(error) => {
                group.trouble = Some(PortError::to_string(&error));
                Vec::new()
            }
        }
    }

    fn there(&mut self, number: usize, id: T::Id, found: Result<Box<T>, Unreadable>) -> Vec<Said<T>> {
        let is_hidden = self.has_earlier(number, &id);
        let Some(group) = self.0.get_mut(number) else { return Vec::new() };
        group.unseen.iter_mut().for_each(|unseen| _ = unseen.remove(&id));
        // Kept only while it does not count: it is needed when the one that does is gone.
        let kept = found.as_ref().ok().filter(|_| is_hidden).cloned();
        let is_new = group.objects.insert(id.clone(), kept).is_none();
        if is_hidden {
            return is_new.then_some(Said::Hidden(id)).into_iter().collect();
        }
        vec![found.map_or_else(|why| Said::Unreadable(id, why), Said::Seen)]
    }

    fn gone(&mut self, number: usize, id: &T::Id) -> Vec<Said<T>> {
        let was_hidden = self.has_earlier(number, id);
        let Some(group) = self.0.get_mut(number) else { return Vec::new() };
        group.unreadable.remove(id);
        if group.objects.remove(id).is_none() || was_hidden {
            return Vec::new();
        }
        // One of a later group counts from now on, as another object: it has another UID.
        let next = self.of(id).and_then(|next| self.0.get_mut(next)?.objects.get_mut(id)?.take());
        vec![next.map_or_else(|| Said::Gone(id.clone()), Said::Seen)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::{Answers, Finalizers};
    use crate::pipeline::spec::Object;
    use crate::pipeline::status::Status;
    use kernel::id::PipelineId;

    fn id() -> PipelineId {
        PipelineId::new("shop", "web")
    }

    fn object(uid: &str) -> Box<Object> {
        Box::new(Object {
            id: id(),
            uid: uid.to_owned(),
            generation: 1,
            version: "1".to_owned(),
            spec: Err("empty".to_owned()),
            answers: Answers::default(),
            status: Status::default(),
            deleting: false,
            finalizers: Finalizers::default(),
        })
    }

    fn uids(said: Vec<Said<Object>>) -> Vec<String> {
        let words = said.into_iter().map(|said| match said {
            Said::Seen(object) => object.uid,
            Said::Gone(_) => "gone".to_owned(),
            Said::Unreadable(_, why) => format!("unreadable: {why}"),
            Said::Hidden(_) => "hidden".to_owned(),
        });
        words.collect()
    }

    // Faults: PF21
    #[test]
    fn the_object_of_the_first_group_counts_and_the_other_takes_over_when_it_is_gone() {
        let mut groups = Groups::new(2);
        assert_eq!(uids(groups.hear(1, ObjectSight::Seen(object("theirs")))), ["theirs"]);
        assert_eq!(uids(groups.hear(0, ObjectSight::Seen(object("ours")))), ["ours"]);
        assert_eq!(groups.hidden().count(), 1);
        assert_eq!(uids(groups.hear(1, ObjectSight::Seen(object("theirs")))), [""; 0], "known to be hidden");
        assert_eq!(uids(groups.hear(0, ObjectSight::Gone(id()))), ["theirs"]);
        assert_eq!(uids(groups.hear(1, ObjectSight::Gone(id()))), ["gone"]);
        assert_eq!((groups.of(&id()), groups.hidden().count()), (None, 0));
    }

    #[test]
    fn a_hidden_object_that_goes_is_no_news() {
        let mut groups = Groups::new(2);
        groups.hear(0, ObjectSight::Seen(object("ours")));
        assert_eq!(uids(groups.hear(1, ObjectSight::Seen(object("theirs")))), ["hidden"]);
        assert_eq!(uids(groups.hear(1, ObjectSight::Gone(id()))), [""; 0]);
        assert_eq!(groups.of(&id()), Some(0));
    }

    #[test]
    fn what_a_complete_listing_does_not_show_is_gone_and_an_unreadable_object_is_not() {
        let mut groups = Groups::new(1);
        groups.hear(0, ObjectSight::Seen(object("ours")));
        groups.hear(0, ObjectSight::Restarted);
        assert!(!groups.are_synced());
        assert_eq!(
            uids(groups.hear(0, ObjectSight::Unreadable(id(), Unreadable::because("no spec")))),
            ["unreadable: no spec"]
        );
        assert_eq!(uids(groups.hear(0, ObjectSight::Synced)), [""; 0]);
        assert_eq!(groups.unreadable().count(), 1);
        groups.hear(0, ObjectSight::Restarted);
        assert_eq!(uids(groups.hear(0, ObjectSight::Synced)), ["gone"]);
        assert!(groups.are_synced() && groups.unreadable().count() == 0);
    }

    #[test]
    fn one_group_does_not_list_for_another() {
        let mut groups = Groups::new(2);
        groups.hear(1, ObjectSight::Seen(object("theirs")));
        groups.hear(0, ObjectSight::Restarted);
        assert_eq!(uids(groups.hear(0, ObjectSight::Synced)), [""; 0]);
        assert_eq!(groups.of(&id()), Some(1));
    }
}
