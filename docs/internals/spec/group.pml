/* How members of a group agree, written again by hand from docs/internals/groups.md and docs/internals/promises.md, for people who
 * know no Rust. It shares no line with the program and none with its model (tests/model). `make spec` searches it with Spin.
 *
 * What is state is what lasts: each cluster's Deployment, each member's ledger, what CloudFront has made, and a write under way.
 * Redis, the network and the memory of a process are none. Before it is `calm`, whoever acts does so with ANY copies of the other
 * records that were ever shown, and may lose what it was about to write: that covers each loss, delay, partition, pause and restart.
 * Once it is calm nothing goes wrong any more, copies are the newest, and LIVE is judged when nobody has anything left to do.
 *
 * Left out: what a purge is made of (hosts, paths, distributions, coverage, pacing), unequal settings, members that come and go,
 * names, and the policies that close a vector without a purge. Every vector with news is purged here.
 */

#ifndef N
#define N 2		/* members */
#endif
#ifndef FIRST
#define FIRST 2		/* versions that the Deployment of the first member goes through */
#endif
#ifndef SECOND
#define SECOND 2	/* … of the second */
#endif
#ifndef THIRD
#define THIRD 2
#endif
#define STEPS_MAX 4
#define STEPS(i) ((i) == 0 -> FIRST : ((i) == 1 -> SECOND : THIRD))
#ifndef VERSION
#ifdef ONWARD
#define VERSION(i, k) (k)	/* A, B, C, … */
#else
#define VERSION(i, k) ((k) % 2)	/* A, B, A, … */
#endif
#endif
#ifndef NUMBERS
#define NUMBERS 3	/* of changes, for each member: 0 is how it was found */
#endif
#ifndef WORKERS
#define WORKERS 1	/* processes of each member that act at once */
#endif
#ifndef FAILS
#define FAILS 0		/* rollouts that may fail */
#endif
#ifndef WITHDRAWS
#define WITHDRAWS 0	/* members that may give up a change, as after group.timeout under policy "skip" */
#endif
#ifndef RESTORES
#define RESTORES 0	/* ledgers that may be set back to an earlier state, and adopted */
#endif
#ifndef CALM
#define CALM 0		/* 1: nothing goes wrong from the beginning */
#endif

/* A vector has a number for each member. */
#if N == 2
#define VECTORS (NUMBERS * NUMBERS)
#else
#define VECTORS (NUMBERS * NUMBERS * NUMBERS)
#endif
#define POWER(i) ((i) == 0 -> 1 : ((i) == 1 -> NUMBERS : NUMBERS * NUMBERS))
#define PART(v, i) (((v) / POWER(i)) % NUMBERS)
#define HAS(set, x) (((set) >> (x)) & 1)
#define ONE(x) (1 << (x))

#define ROLLING 0
#define COMPLETE 1
#define FAILED 2
#define WITHDRAWN 3

/* A member's record of the workload. One writer cluster (GA-1). */
typedef Record {
	byte number;	/* of the change that it is about */
	byte seen;	/* the Deployment's generation that it knows: an older sight is not believed */
	byte phase;
	byte kept;	/* set of numbers that were completed, gone past and not closed */
	byte last;	/* the vector of the last vote */
	int votes;	/* sets of vectors: voted for … */
	int purged;	/* … closed as purged … */
	int dead	/* … closed as dead */
}

typedef Write { bit on; byte from; byte version; Record to }	/* a compare-and-set under way, and what it was made from */

#define SHOWN_MAX 16
typedef Member {
	byte at; bit up;	/* its Deployment: which of its versions, and whether that rollout is complete */
	byte was;		/* set of places at which it was complete, now or before */
	byte next;		/* the number that the next change gets; a nonce makes it unique, so it never goes back (GA-2) */
	byte is[NUMBERS];	/* the version of each number */
	byte shown;		/* how many records were written; the last one is the ledger, all were shown to the others */
	Record record[SHOWN_MAX];
	Write write[WORKERS]
}

Member m[N];
bit calm = CALM;
bit idle[N * WORKERS];
byte fails = FAILS, withdraws = WITHDRAWS, restores = RESTORES;

/* CloudFront: an invalidation for each reference; the same reference gives back the one that is there. */
int made;

/* What really happened, known to the judge alone. */
byte completed[N];	/* numbers that a record has said are complete, and that were so, then or before */
int together;		/* vectors at which all were so at one instant */
int unfounded;		/* vectors for which a member voted that had gone back to an older version, or was not complete */
int old;		/* vectors whose invalidation was made for an earlier change of the same number */
bit gave_up, forgot;

/* Scratch: set before it is read, within one atomic step. */
hidden byte copy[N];
hidden byte j, k, v, c, x, y;
hidden byte ok, did;
hidden int set;

#define OWN(i) m[i].record[m[i].shown - 1]
#define COPY(i) m[i].record[copy[i]]
#define RUNS(i) VERSION(i, m[i].at)

inline awake() { for (x : 0 .. N * WORKERS - 1) { idle[x] = 0 } }

inline to_write(i, w) {
	m[i].write[w].on = 1;
	m[i].write[w].from = m[i].shown;
	m[i].write[w].to.number = OWN(i).number;
	m[i].write[w].to.seen = OWN(i).seen;
	m[i].write[w].to.phase = OWN(i).phase;
	m[i].write[w].to.kept = OWN(i).kept;
	m[i].write[w].to.last = OWN(i).last;
	m[i].write[w].to.votes = OWN(i).votes;
	m[i].write[w].to.purged = OWN(i).purged;
	m[i].write[w].to.dead = OWN(i).dead;
	did = 1
}

inline forget_write(i, w) {
	m[i].write[w].on = 0;
	m[i].write[w].from = 0;
	m[i].write[w].version = 0;
	m[i].write[w].to.number = 0;
	m[i].write[w].to.seen = 0;
	m[i].write[w].to.phase = 0;
	m[i].write[w].to.kept = 0;
	m[i].write[w].to.last = 0;
	m[i].write[w].to.votes = 0;
	m[i].write[w].to.purged = 0;
	m[i].write[w].to.dead = 0
}

/* Which copies of the others' records a step has: any, or the newest. */
inline look_around(i) {
	for (j : 0 .. N - 1) {
		if
		:: calm || j == i -> copy[j] = m[j].shown - 1
		:: else -> select(k : 0 .. m[j].shown - 1); copy[j] = k
		fi
	}
}

/* A change gets the next number. What was completed and not closed is kept, unless the Deployment goes back to what ran before it. */
inline begin(i, w, to_version) {
	assert(m[i].next < NUMBERS);
	to_write(i, w);
	if
	:: OWN(i).phase == COMPLETE && OWN(i).number > 0 -> m[i].write[w].to.kept = OWN(i).kept | ONE(OWN(i).number)
	:: else
	fi;
	for (x : 1 .. NUMBERS - 1) {
		for (y : 0 .. x - 1) {
			if
			:: m[i].is[y] == to_version -> m[i].write[w].to.kept = m[i].write[w].to.kept & ~ONE(x)
			:: else
			fi
		}
	}
	m[i].write[w].version = to_version;
	m[i].write[w].to.number = m[i].next;
	m[i].write[w].to.phase = ROLLING
}

/* What the Deployment shows, at a place of its way, complete or not. */
inline observe(i, w, seen_at, complete) {
	if
	:: VERSION(i, seen_at) != m[i].is[OWN(i).number] && m[i].next < NUMBERS ->
		begin(i, w, VERSION(i, seen_at))
	:: VERSION(i, seen_at) == m[i].is[OWN(i).number] && OWN(i).phase == ROLLING && complete ->
		to_write(i, w);
		m[i].write[w].to.phase = COMPLETE
	:: VERSION(i, seen_at) == m[i].is[OWN(i).number] && OWN(i).phase == ROLLING && !complete && !calm && fails > 0 ->
		to_write(i, w);
		m[i].write[w].to.phase = FAILED
	:: VERSION(i, seen_at) == m[i].is[OWN(i).number] && OWN(i).phase == FAILED && complete && m[i].next < NUMBERS ->
		/* It completed late: a new change. */
		begin(i, w, VERSION(i, seen_at))
	:: else
	fi;
	if
	:: did -> m[i].write[w].to.seen = seen_at
	:: else
	fi
}

/* Whether a record has completed the number, now or before. */
#define STANDS(r, n) ((r.number == (n) && r.phase == COMPLETE) || HAS(r.kept, n))

/* GA-6. A record that failed or gave up at the number, or has gone past it without voting and does not keep it. */
#ifdef PAST_IS_DEAD
#define GONE(r, v, n) (r.number > (n) && !HAS(r.kept, n))
#else
#define GONE(r, v, n) (r.number > (n) && !HAS(r.kept, n) && !HAS(r.votes, v))
#endif
#define DEAD(r, v, n) ((r.number == (n) && (r.phase == FAILED || r.phase == WITHDRAWN)) || GONE(r, v, n))

/* GA-4: whether member i may vote for v by the copies that it has, and by a fresh look at its own Deployment after that. */
inline may_vote(i) {
	c = PART(v, i);
	ok = v > 0 && !HAS(OWN(i).votes, v) && STANDS(OWN(i), c);
	set = 0;	/* whether another member has voted for it */
	for (j : 0 .. N - 1) {
		if
		:: j != i && HAS(COPY(j).votes, v) && !HAS(COPY(j).dead, v) -> set = 1
		:: else
		fi
	}
	for (j : 0 .. N - 1) {
		/* GA-10: nowhere older than the last vote. */
#ifndef NO_CHAIN
		ok = ok && PART(v, j) >= PART(OWN(i).last, j);
#endif
		if
		:: j != i && set == 0 -> ok = ok && STANDS(COPY(j), PART(v, j)) && m[j].is[PART(v, j)] == m[i].is[c]
		:: j != i && set == 1 ->
			/* Its vote stands, whatever it shows; but not for what is dead. */
			ok = ok && !DEAD(COPY(j), v, PART(v, j))
		:: else
		fi
	}
#ifndef NO_RECHECK
	/* The fresh look: what runs is what the record is about, and complete, if it is the newest number that is voted for. */
	ok = ok && RUNS(i) == m[i].is[OWN(i).number];
	if
	:: c == OWN(i).number -> ok = ok && m[i].up
	:: else
	fi
#endif
}

#define THERE 0
#define BEHIND 1
#define AHEAD 2

/* The judge: where a Deployment is, as seen from number c. */
inline where(i) {
	ok = (RUNS(i) == m[i].is[c] -> THERE : AHEAD);
	for (x : 0 .. NUMBERS - 1) {
		if
		:: ok == AHEAD && x < c && m[i].is[x] == RUNS(i) -> ok = BEHIND
		:: else
		fi
	}
}

inline vote(i, w) {
	printf("m%d: looks, and will vote for (%d, %d)\n", i + 1, PART(v, 0), PART(v, 1));
	to_write(i, w);
	m[i].write[w].to.votes = OWN(i).votes | ONE(v);
	m[i].write[w].to.last = v;
	/* Votes are a chain: what was kept from before is let go. */
	for (x : 0 .. NUMBERS - 1) {
		if
		:: x < c -> m[i].write[w].to.kept = m[i].write[w].to.kept & ~ONE(x)
		:: else
		fi
	}
	/* The judge: what runs there while it looks. */
	where(i);
	if
	:: ok == BEHIND || (RUNS(i) == m[i].is[c] && !m[i].up) -> unfounded = unfounded | ONE(v)
	:: else
	fi
}

/* What becomes of a vector that member i has voted for: ok, if it is purged or dead by the copies. */
inline fate(i) {
	did = 0;
	ok = HAS(OWN(i).votes, v) && !HAS(OWN(i).purged, v) && !HAS(OWN(i).dead, v);
	set = 1;	/* all have voted for it */
	c = 0;		/* 1: one is dead. 2: one says that it is purged */
	for (j : 0 .. N - 1) {
		if
		:: !HAS(COPY(j).votes, v) -> set = 0
		:: else
		fi;
		if
		:: HAS(COPY(j).purged, v) -> c = 2
		:: !HAS(COPY(j).purged, v) && c != 2 && DEAD(COPY(j), v, PART(v, j)) -> c = 1
		:: else
		fi
	}
}

#ifdef TAG_REFERENCE
/* The old program's: workload and tag. Bit 30 and 31 stand for A and B. */
#define REFERENCE(i, v) (28 + m[i].is[PART(v, i)])
#else
#define REFERENCE(i, v) (v)
#endif

inline create(i) {
	printf("m%d: purges for (%d, %d)\n", i + 1, PART(v, 0), PART(v, 1));
	/* SAFE-2, SAFE-3. */
	assert(!HAS(unfounded, v));
	for (j : 0 .. N - 1) { assert(HAS(completed[j], PART(v, j))) }
	set = HAS(together, v);
	for (j : 0 .. N - 1) {
		c = PART(v, j);
		where(j);
		set = set || ok == AHEAD
	}
	assert(set);	/* it was complete everywhere at one instant, or one has gone on */
	/* SAFE-4. */
	for (j : 0 .. N - 1) {
		assert(!(OWN(j).number == PART(v, j) && (OWN(j).phase == FAILED || OWN(j).phase == WITHDRAWN)))
	}
	/* SAFE-1: what is found under the reference was made for this vector. */
	assert(!HAS(old, v));
#ifdef TAG_REFERENCE
	if
	:: HAS(made, REFERENCE(i, v)) -> assert(HAS(made, v))
	:: else
	fi;
	made = made | ONE(REFERENCE(i, v));
#endif
	made = made | ONE(v)
}

inline finish(i, w) {
	if
	:: ok && set && c != 2 ->
		create(i);
		to_write(i, w);
		m[i].write[w].to.purged = OWN(i).purged | ONE(v)
	:: ok && c == 2 ->
		to_write(i, w);
		m[i].write[w].to.purged = OWN(i).purged | ONE(v)
	:: ok && !set && c == 1 ->
		to_write(i, w);
		m[i].write[w].to.dead = OWN(i).dead | ONE(v)
	:: else
	fi
}

/* What holds at every instant. */
inline judge() {
	ok = 1;
	v = 0;
	for (j : 0 .. N - 1) {
		for (x : 0 .. STEPS_MAX - 1) {
			if
			:: OWN(j).phase == COMPLETE && HAS(m[j].was, x) && VERSION(j, x) == m[j].is[OWN(j).number] ->
				completed[j] = completed[j] | ONE(OWN(j).number)
			:: else
			fi
		}
		ok = ok && OWN(j).phase == COMPLETE && m[j].up && RUNS(j) == m[j].is[OWN(j).number];
		v = v + OWN(j).number * POWER(j)
	}
	if
	:: ok -> together = together | ONE(v)
	:: else
	fi;
	for (v : 1 .. VECTORS - 1) {
		set = 1; ok = 0; c = 0;
		for (j : 0 .. N - 1) {
			set = set && HAS(OWN(j).votes, v);
			ok = ok || DEAD(OWN(j), v, PART(v, j));
			c = c | HAS(OWN(j).purged, v) | (HAS(OWN(j).dead, v) << 1)
		}
		/* GA-6: decided and dead exclude each other. TELL-1: it ends in one way for all, unless a ledger was set back. */
		assert(!(set && ok));
		assert(c != 3 || forgot);
		assert(!(HAS(made, v) && (c & 2)) || forgot)
	}
}

/* The ledger takes it; the judge looks on. */
inline written(i, w) {
	assert(m[i].shown < SHOWN_MAX);
	if
	:: m[i].write[w].to.number == m[i].next -> m[i].is[m[i].next] = m[i].write[w].version; m[i].next++
	:: else
	fi;
	if
	:: m[i].write[w].to.phase == FAILED && OWN(i).phase != FAILED -> fails--
	:: m[i].write[w].to.phase == WITHDRAWN && OWN(i).phase != WITHDRAWN -> withdraws--; gave_up = 1
	:: else
	fi;
	/* GA-2, GA-3, GA-5, GA-10. */
	assert(m[i].write[w].to.number >= OWN(i).number);
	assert(m[i].write[w].to.number > OWN(i).number || m[i].write[w].to.phase >= OWN(i).phase);
	assert((OWN(i).votes & ~m[i].write[w].to.votes) == 0);
	m[i].shown++;
	OWN(i).number = m[i].write[w].to.number;
	OWN(i).seen = m[i].write[w].to.seen;
	OWN(i).phase = m[i].write[w].to.phase;
	OWN(i).kept = m[i].write[w].to.kept;
	OWN(i).last = m[i].write[w].to.last;
	OWN(i).votes = m[i].write[w].to.votes;
	OWN(i).purged = m[i].write[w].to.purged;
	OWN(i).dead = m[i].write[w].to.dead;
	printf("m%d: record %d: number %d, phase %d, kept %d, votes %d, purged %d, dead %d\n", i + 1, m[i].shown - 1, OWN(i).number, OWN(i).phase,
		OWN(i).kept, OWN(i).votes, OWN(i).purged, OWN(i).dead);
	judge()
}

/* All that a member does, each for any vector. Once it is calm: the first thing that there is to do. */
proctype Worker(byte i, w) {
end_idle:	do
	:: atomic { !calm && !m[i].write[w].on ->
		did = 0;
		if
		:: observe(i, w, m[i].at, m[i].up)
		:: m[i].at > OWN(i).seen -> observe(i, w, m[i].at - 1, HAS(m[i].was, m[i].at - 1))	/* the watch lags */
		fi }
	:: atomic { !calm && !m[i].write[w].on ->
		look_around(i);
		v = 1;
		do
		:: v == VECTORS -> break
		:: else ->
			may_vote(i);
			if
			:: ok -> vote(i, w); break
			:: true -> v++
			fi
		od }
	:: atomic { !calm && !m[i].write[w].on ->
		look_around(i);
		v = 1;
		do
		:: v == VECTORS -> break
		:: else ->
#ifdef FACTS
			/* No votes: it acts on what all records say. */
			ok = 1;
			for (j : 0 .. N - 1) { ok = ok && STANDS(COPY(j), PART(v, j)) && m[j].is[PART(v, j)] == m[i].is[PART(v, i)] }
			if
			:: ok -> create(i)
			:: else
			fi;
#endif
			fate(i);
			if
			:: ok -> finish(i, w); if :: did -> break :: else -> v++ fi
			:: true -> v++
			fi
		od }
	:: atomic { !calm && !m[i].write[w].on && withdraws > 0 && OWN(i).number > 0 && OWN(i).phase <= COMPLETE ->
		/* Only where it has not voted with this number (GA-5). */
		ok = 1;
#ifndef WITHDRAW_AFTER_VOTE
		for (v : 1 .. VECTORS - 1) { ok = ok && !(HAS(OWN(i).votes, v) && PART(v, i) == OWN(i).number) }
#endif
		if
		:: ok -> to_write(i, w); m[i].write[w].to.phase = WITHDRAWN
		:: else
		fi }
	:: atomic { calm && !m[i].write[w].on && !idle[i * WORKERS + w] ->
		did = 0;
		look_around(i);
		observe(i, w, m[i].at, m[i].up);
		v = 1;
		do
		:: did || v == VECTORS -> break
		:: else ->
			may_vote(i);
			if
			:: ok -> vote(i, w)
			:: else -> fate(i); finish(i, w)
			fi;
			v++
		od;
		if
		:: did -> awake()
		:: else -> idle[i * WORKERS + w] = 1
		fi }
	:: atomic { m[i].write[w].on ->
		if
#ifdef NO_CAS
		:: true ->
#else
		:: m[i].write[w].from == m[i].shown ->
#endif
			written(i, w)
		:: m[i].write[w].from != m[i].shown -> skip	/* refused */
		:: !calm -> skip				/* it dies before, or never hears */
		fi;
		forget_write(i, w);
		awake() }
	od
}

/* People and controllers: the Deployment moves on whenever it likes, and each rollout is complete sooner or later. */
proctype Cluster(byte i) {
end_idle:	do
	:: atomic { m[i].at + 1 < STEPS(i) -> m[i].at++; m[i].up = 0; printf("m%d: version %d is rolled out\n", i + 1, RUNS(i)); awake() }
	:: atomic { !m[i].up -> m[i].up = 1; m[i].was = m[i].was | ONE(m[i].at); printf("m%d: version %d is complete\n", i + 1, RUNS(i)); judge(); awake() }
	od
}

active proctype World() {
	byte i = 0;
	atomic {
		do
		:: i < N ->
			m[i].up = 1;
			m[i].was = 1;
			m[i].next = 1;
			m[i].shown = 1;
			m[i].is[0] = VERSION(i, 0);
			OWN(i).phase = COMPLETE;
			completed[i] = 1;
			i++
		:: else -> break
		od;
		together = 1;
		for (i : 0 .. N - 1) {
			run Cluster(i);
			for (x : 0 .. WORKERS - 1) { run Worker(i, x) }
		}
		i = 0
	}
	do
	:: atomic { !calm -> calm = 1; awake() }
	:: atomic { !calm && restores > 0 ->
		/* It is on hold until a person has it adopted: the Deployment as it is, with the votes of the copies that are left, under a number
		 * above all that were ever seen. */
		restores--;
		select(i : 0 .. N - 1);
		select(k : 0 .. m[i].shown - 1);
		assert(m[i].shown < SHOWN_MAX);
#ifdef OLD_NUMBERS
		m[i].next = 1;
		for (v : 1 .. VECTORS - 1) {
			if
			:: PART(v, i) > 0 && HAS(made, v) -> old = old | ONE(v)
			:: else
			fi
		}
#endif
		if
		:: m[i].next < NUMBERS ->
			forgot = forgot || m[i].record[k].votes != OWN(i).votes;
			m[i].shown++;
			OWN(i).number = m[i].next;
			OWN(i).seen = m[i].at;
			OWN(i).phase = (m[i].up -> COMPLETE : ROLLING);
			OWN(i).last = m[i].record[k].last;
			OWN(i).votes = m[i].record[k].votes;
			OWN(i).purged = m[i].record[k].purged;
			OWN(i).dead = m[i].record[k].dead;
			m[i].is[m[i].next] = RUNS(i);
			m[i].next++;
			printf("m%d: its ledger is restored and adopted\n", i + 1);
			judge()
		:: else
		fi;
		i = 0;
		awake() }
	:: timeout -> break
	od;
	/* LIVE-1: whatever was decided was purged, and each member knows. LIVE-2: what all have completed was purged. */
	atomic {
		ok = 1; c = 0;
		for (j : 0 .. N - 1) {
			/* Where numbers have run out, a record is not about what runs. */
			ok = ok && OWN(j).phase == COMPLETE && m[j].is[OWN(j).number] == RUNS(j) && RUNS(j) == RUNS(0);
			c = c + OWN(j).number * POWER(j)
		}
		assert(!ok || c == 0 || gave_up || HAS(made, c));
		for (v : 1 .. VECTORS - 1) {
			set = 1; ok = 1;
			for (j : 0 .. N - 1) {
				set = set && HAS(OWN(j).votes, v);
				ok = ok && HAS(OWN(j).purged, v)
			}
			assert(!set || (ok && HAS(made, v)))
		}
	}
}
