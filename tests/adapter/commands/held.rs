//! What holds a group up, as the commands say it: with the reason, where it is, and what ends it.

use super::*;

/// What eu-2 would say.
fn theirs(change: impl FnOnce(&mut Heartbeat)) -> Heartbeat {
    let mut beat = Heartbeat {
        member: "eu-2".into(),
        origin: "o-2".into(),
        boot: "x".to_owned(),
        count: 1,
        version: "0.1.0".to_owned(),
        members: members(&["eu-1", "eu-2", "us-1"]),
        settings: agreed(),
        config: config(),
        ..Heartbeat::default()
    };
    change(&mut beat);
    let pairs = beat.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    beat.config = config_hash(pairs);
    beat
}

impl World {
    async fn show(&self, output: Output) -> Outcome {
        group::show(&self.sources, output).await
    }

    async fn explained(&self) -> String {
        flat(&explain(&self.sources, &Self::question(Some("web")), Output::Table).await)
    }

    /// The group has only the two servers that live.
    fn without_the_third(&mut self) {
        self.sources.group.as_mut().unwrap().boards.truncate(2);
    }
}

// Faults: R5
#[tokio::test]
async fn a_redis_that_takes_no_writes_is_not_called_well() {
    let mut world = World::start().await;
    world.without_the_third();
    let ours = Heartbeat {
        member: "eu-1".into(),
        origin: world.origin.clone(),
        boot: "b".into(),
        count: 9,
        ..Heartbeat::default()
    };
    world.board(0, "eu-1").beat(&ours).await.unwrap();
    // It answers, and lacks what our allclear has left elsewhere.
    let shown = flat(&world.show(Output::Table).await);
    assert!(shown.contains("eu-1's allclear leaves its beats elsewhere and not there"), "{shown}");
    world.board(1, "eu-1").beat(&Heartbeat { count: 8, ..ours.clone() }).await.unwrap();
    assert_eq!(flat(&world.show(Output::Table).await).matches(": well").count(), 2);
    // A replica shows all that its primary has, and takes nothing.
    let primary = world.redis[0].port().to_string();
    world.redis[1].command::<()>(&["REPLICAOF", "127.0.0.1", &primary]);
    world.redis[0].command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    for text in [flat(&world.show(Output::Table).await), flat(&world.status(Output::Table).await)] {
        assert!(text.contains(": READONLY: this is a replica; point us at the primary"), "{text}");
        assert!(text.contains(": OOM: the server has reached maxmemory; give it more"), "{text}");
        assert!(!text.contains(": well"), "{text}");
    }
}

#[tokio::test]
async fn members_that_differ_are_not_called_agreed_and_what_to_do_is_said_with_both_values() {
    let world = World::start().await;
    world.ledger_has(record(2, 1, "2", &json!("complete"), 1)).await;
    world.eu_2_shows(record(7, 3, "2", &json!("complete"), 7)).await;
    let other = theirs(|beat| drop(beat.settings.insert("purge.paths".to_owned(), "/news/*".to_owned())));
    let board = world.board(1, "eu-2");
    board.beat(&other).await.unwrap();
    let copy = Record { config: other.config.clone(), ..record(7, 4, "2", &json!("complete"), 7) };
    board.post(&"o-2".into(), &[(web(), copy.into())]).await.unwrap();
    let (values, cure) =
        ("purge.paths is \"/news/*\" there and \"/*\" here", "give purge.paths one value in eu-2 and in eu-1");
    for text in
        [flat(&world.show(Output::Table).await), flat(&world.status(Output::Table).await), world.explained().await]
    {
        println!("{text}\n");
        assert!(text.contains(values) && text.contains(cure), "{text}");
        assert!(!text.contains("State agreed") && !text.contains("Next votes for the purge"), "{text}");
        assert!(
            !text.contains("so nothing is agreed on with it"),
            "what is beside the member is no further trouble: {text}"
        );
    }
    let status = flat(&world.status(Output::Table).await);
    let (held, rollout) = (status.find("Held up"), status.find("shop/web rollout 2"));
    assert!(held.is_some() && held < rollout, "first of all: {status}");
}

#[tokio::test]
async fn a_member_with_another_key_is_not_called_down() {
    let mut world = World::start().await;
    world.without_the_third();
    let url = world.redis[1].url();
    let key = allclear::config::Secret::new(b"another key".to_vec());
    let keyed = RedisBoard::new(RedisServer::new(&url).unwrap(), "default", &"eu-2".into(), Some(key));
    keyed.beat(&theirs(|_| {})).await.unwrap();
    let shown = flat(&world.show(Output::Table).await);
    assert!(shown.contains("eu-2: heard from, and not believed: signed, but this member has no key"), "{shown}");
    assert!(shown.contains("give all members the same group.key_file") && !shown.contains("State agreed"), "{shown}");
}

#[tokio::test]
async fn a_record_that_nobody_waits_for_is_no_alarm() {
    let world = World::start().await;
    let at_rest = |seq| Record { config: String::new(), ..record(seq, 1, "2", &json!("complete"), seq) };
    world.ledger_has(at_rest(1)).await;
    world.eu_2_shows(Record { config: "before".to_owned(), ..at_rest(4) }).await;
    let text = world.explained().await;
    assert!(text.contains("at rest: no member waits for a purge of it") && !text.contains("awaited"), "{text}");
    assert!(!text.contains("waiting for") && !text.contains("another configuration"), "{text}");
}

#[tokio::test]
async fn what_is_forgotten_is_cleaned_up_and_may_be_had_back() {
    let mut world = World::start().await;
    world.without_the_third();
    let copy = purge::ports::Posting::from(record(4, 1, "2", &json!("complete"), 4));
    for redis in 0..2 {
        world.board(redis, "us-1").post(&"o-3".into(), &[(web(), copy.clone())]).await.unwrap();
    }
    // eu-2 has forgotten it already.
    let done = theirs(|beat| {
        beat.members = members(&["eu-1", "eu-2"]);
        beat.settings.insert("group.members".to_owned(), "eu-1, eu-2".to_owned());
    });
    world.board(1, "eu-2").beat(&done).await.unwrap();
    let text = flat(&world.show(Output::Table).await);
    assert!(text.contains("one of them may still have to forget a member"), "{text}");
    let forgot = group::forget(&world.sources, "us-1", Consent::Given).await;
    assert_eq!((forgot.code, forgot.out.as_str()), (0, "us-1 is forgotten here\n"));
    for redis in &world.redis {
        let keys: Vec<String> = redis.command(&["KEYS", "*us-1*"]);
        assert!(keys.is_empty(), "{keys:?}");
    }
    let unknown = group::add(&world.sources, "eu-9").await;
    assert!(unknown.code == 1 && unknown.err.contains("eu-9 was not forgotten here"), "{}", unknown.err);
    let added = group::add(&world.sources, "us-1").await;
    assert!(added.code == 0 && added.out.starts_with("us-1 is not forgotten here any more"), "{}", added.out);
    assert!(world.sources.ledger.pin().await.unwrap().unwrap().forgotten.is_empty());
}
