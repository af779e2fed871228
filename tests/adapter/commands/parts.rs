//! What `status` shows of each member's part in one rollout, by what members have left in real Redis servers.

use super::*;

const BEAT: &str = "allclear:{default}:hb:us-1";

impl World {
    /// us-1 leaves its record, on its own Redis, and this text as its beat, of the one that it would have left.
    async fn us_1_shows(&self, record: Record, beat: impl FnOnce(&str, Value) -> String) {
        let (board, redis) = (self.board(1, "us-1"), &self.redis[1]);
        let saying = Saying { seq: record.seq, words: "0 of 2 pods ready".to_owned(), since_ms: Some(1) };
        let said = Said::of([(web(), saying)].into());
        let own = Heartbeat { member: "us-1".into(), origin: "o-3".into(), said, at_ms: 9, ..Heartbeat::default() };
        board.beat(&own).await.unwrap();
        let left: String = redis.command(&["GET", BEAT]);
        let (head, body) = left.split_at(left.find('{').unwrap());
        redis.command::<()>(&["SET", BEAT, &beat(head, serde_json::from_str(body).unwrap())]);
        assert_eq!(board.post(&"o-3".into(), &[(web(), record.into())]).await.unwrap(), [Posted::Current]);
    }

    /// The parts as JSON, eu-1's first, and the troubles.
    async fn parts(&self) -> (Value, String) {
        let state: Value = serde_json::from_str(&self.status(Output::Json).await.out).unwrap();
        assert_eq!(state["parts"][0]["workload"], "deployment/shop/web", "{state:#}");
        (state["parts"][0]["members"].clone(), state["troubles"].to_string())
    }
}

// Faults: T13
/// Goal: a member's own reason and the age of it stand beside the rollout that they are about; what cannot be read of another member is
/// named and costs that one alone. Method: eu-2 says why it waits, while us-1 is of the release before, then writes rubbish, then a megabyte.
#[tokio::test]
async fn each_member_shows_its_own_part_and_what_cannot_be_read_costs_that_member_alone() {
    let world = World::start().await;
    world.ledger_has(record(2, 1, "2", &json!("complete"), 1)).await;
    world.eu_2_shows(record(7, 3, "2", &json!("rolling"), 6)).await;
    let eu_2_is_as_it_was = |parts: &Value| {
        assert_eq!(parts[0]["is_self"], true, "{parts:#}");
        assert_eq!(
            (&parts[1]["member"], &parts[1]["phase"], &parts[1]["seq"]),
            (&json!("eu-2"), &json!("rolling"), &json!(7))
        );
        assert_eq!(parts[1]["says"], "2 of 5 pods ready; web-x4: ImagePullBackOff");
        assert_eq!((&parts[1]["for_s"], &parts[1]["silent"]), (&json!(260), &Value::Null));
    };
    let rolling = || record(4, 3, "2", &json!("rolling"), 3);

    let before = |head: &str, mut beat: Value| {
        let fields = beat.as_object_mut().unwrap();
        for name in ["seqs", "since"] {
            assert!(fields.remove(name).is_some(), "{name} is new");
        }
        format!("{head}{beat}")
    };
    world.us_1_shows(rolling(), before).await;
    let (parts, _) = world.parts().await;
    eu_2_is_as_it_was(&parts);
    assert_eq!(
        (&parts[2]["phase"], &parts[2]["says"], &parts[2]["silent"]),
        (&json!("rolling"), &Value::Null, &Value::Null)
    );

    for (beat, silent, named) in [
        ("rubbish".to_owned(), "is not believed: not a beat", "not a beat"),
        ("x".repeat(1 << 20), "has left no report that was read here", "longer than any of ours"),
    ] {
        world.us_1_shows(rolling(), |_, _| beat).await;
        let (parts, troubles) = world.parts().await;
        eu_2_is_as_it_was(&parts);
        assert_eq!((&parts[2]["phase"], &parts[2]["says"]), (&json!("rolling"), &Value::Null), "its record was read");
        assert_eq!(parts[2]["silent"], silent);
        assert!(troubles.contains(named) && troubles.contains("us-1") && troubles.len() < 2_000, "{troubles}");
    }
}
