import { statement } from '../db/db.ts'
import { exactTimeText } from '../db/time-text.ts'

/** The name of the follower that seals. */
export const followerName = 'ledger'

const signs = 'k.private_jwk is not null'

/** The key that signs. */
export const readLedgerSignerSql = statement(
  'read_ledger_signer',
  `select k.kid, k.private_jwk from ledger_keys k where ${signs}`,
)

/** All keys, newest first. */
export const listLedgerKeysSql = statement(
  'list_ledger_keys',
  'select k.kid, k.public_jwk, k.created_at, k.retired_at from ledger_keys k order by k.created_at desc, k.kid',
)

/**
 * Locks the table until the commit, so that only one of several starting servers creates the key. Readers do not wait.
 */
export const lockLedgerKeysSql = statement('lock_ledger_keys', 'lock table ledger_keys in share row exclusive mode')

/** $1: kid, $2: public key, $3: private key. */
export const insertLedgerKeySql = statement(
  'insert_ledger_key',
  'insert into ledger_keys (kid, public_jwk, private_jwk) values ($1, $2::jsonb, $3::jsonb)',
)

/** Removes the private half of the key that signs. */
export const retireLedgerKeySql = statement(
  'retire_ledger_key',
  `update ledger_keys k set private_jwk = null, retired_at = now() where ${signs}`,
)

/** The key of the organization and the name of its numbering. The origin consists of them. */
export const readLogNameSql = statement(
  'read_log_name',
  `select o.key as organization, h.log_id from organizations o join change_heads h on h.organization_id = $1
   where o.id = $1`,
)

export const readLedgerSql = statement(
  'read_ledger',
  'select l.size, l.edge, l.checkpoint, l.sealed_at from ledgers l where l.organization_id = $1',
)

/**
 * The answers h of a change c, in order, with the hash of the text. Because of the order, PostgreSQL looks up the
 * answers of each change instead of joining all answers of the organization.
 */
const answersOfChange = `(
     select h.person_id, h.consent_type_id, h.channel, h.previous_state, h.state, h.superseded, h.pending, h.undated, h.at,
       h.collected_at, h.evidence, h.actor, h.request_id,
       case when h.evidence ? 'text_version' then (
         select encode(t.sha256, 'hex') from consent_texts t
         where t.organization_id = $1 and t.consent_type_id = h.consent_type_id
           and t.version = (h.evidence->>'text_version')::integer
       ) end as text_sha256
     from consent_history h
     where h.organization_id = $1 and h.person_id = c.entity_id and h.version = c.version
     order by h.consent_type_id, h.channel
   )`

const part = (bytes: string, length: number) =>
  `substr(${bytes}::bytea, (v.position::integer - 1) * ${length} + 1, ${length})`

const answerColumns = `c.sequence, a.person_id, a.consent_type_id, a.channel, a.previous_state, a.state, a.superseded, a.pending, a.undated, a.at,
     ${exactTimeText('a.collected_at')} as collected_at, a.evidence, a.actor, a.request_id, a.text_sha256`

/** Whether a change c may have answers. This is so if the retention of the log has removed its values. */
const mayHaveAnswers = `c.stack_id = 0 and (c.before ? 'consents' or c.after ? 'consents' or c.after = '{}')`

const answersOfLog = (columns: string) => `select ${columns}
   from changes c cross join lateral ${answersOfChange} a
   where c.organization_id = $1 and c.sequence > $2 and c.sequence <= $3 and ${mayHaveAnswers}
   order by c.sequence, a.consent_type_id, a.channel limit $4`

/**
 * $2: after this change, $3: up to this one, $4: limit. The answers in the order of the ledger. The values of a change
 * show whether it has answers. If the retention of the log has removed the values, the statement looks for answers.
 */
export const readAnswersSql = statement('read_answers', answersOfLog(answerColumns))

/**
 * As {@link readAnswersSql}, with the leaves of the answers that were erased before they were sealed. One statement
 * reads both, so that it misses no answer that a concurrent erasure moves.
 */
export const readUnsealedSql = statement(
  'read_unsealed',
  `select * from (
     (${answersOfLog(`${answerColumns}, null::bytea as hash`)})
     union all (
       select x.sequence, null, x.consent_type_id, x.channel, null, null, null, null, null, null, null, null, null, null, null, x.hash
       from erased_answers x where x.organization_id = $1 and x.sequence > $2 and x.sequence <= $3
       order by x.sequence, x.consent_type_id, x.channel limit $4
     )
   ) u order by u.sequence, u.consent_type_id, u.channel limit $4`,
)

// Citus treats a column of unnest as text unless the statement computes with it.
const givenChanges = 'unnest($1::integer[], $2::bigint[]) as v(organization_id, sequence)'
const isGiven = (row: string) => `${row}.organization_id = v.organization_id + 0 and ${row}.sequence = v.sequence + 0`

/**
 * $1: organizations, $2: a change of each. The organizations that may have answers to seal. With ranges instead of
 * single changes, PostgreSQL estimated a ninth of each log, and read all logs: 100 ms with 24,000 changes.
 */
export const findUnsealedSql = statement(
  'find_unsealed',
  `select c.organization_id from ${givenChanges} join changes c on ${isGiven('c')} where ${mayHaveAnswers}
   union
   select x.organization_id from ${givenChanges} join erased_answers x on ${isGiven('x')}`,
)

/** $2: people. Their answers after the position of the ledger's follower, which is locked. */
export const readUnsealedOfSql = statement(
  'read_unsealed_of',
  `select ${answerColumns}
   from followers f cross join unnest($2::uuid[]) as v(id) cross join lateral (
     select h.version from consent_history h where h.organization_id = $1 and h.person_id = v.id group by h.version offset 0
   ) w cross join lateral (
     select c.sequence, c.entity_id, c.version from changes c
     where c.organization_id = $1 and c.entity_id = v.id and c.version = w.version offset 0
   ) c cross join lateral ${answersOfChange} a
   where f.organization_id = $1 and f.name = '${followerName}' and f.id = 0 and c.sequence > f.sequence`,
)

/** $2: sequences, $3: consent types, $4: channels, $5: hashes, concatenated. */
export const insertErasedAnswersSql = statement(
  'insert_erased_answers',
  `insert into erased_answers (organization_id, sequence, consent_type_id, channel, hash)
   select h.organization_id, v.sequence, v.consent_type_id, v.channel, ${part('$5', 32)}
   from change_heads h cross join unnest($2::bigint[], $3::integer[], $4::text[])
     with ordinality as v(sequence, consent_type_id, channel, position)
   where h.organization_id = $1`,
)

/** $2: up to this change. These answers are sealed. */
export const deleteErasedAnswersSql = statement(
  'delete_erased_answers',
  'delete from erased_answers x where x.organization_id = $1 and x.sequence <= $2',
)

/**
 * Whether the answer v still exists. An erasure locks the position that this transaction has advanced, so an answer
 * that was read before it is gone by now. Without erasures in the organization, the statement looks up no answer.
 */
const isKept = `not exists (select from erasures x where x.organization_id = $1) or exists (
     select from consent_history h
     where h.organization_id = $1 and h.consent_type_id = v.consent_type_id and h.channel = v.channel
       and (h.person_id, h.version) = (
         select c.entity_id, c.version from changes c where c.organization_id = $1 and c.sequence = v.sequence
       )
   )`

/**
 * $2: index of the first, $3: sequences, $4: consent types, $5: channels, $6: salts and $7: hashes, each concatenated.
 * The entry of an erased answer has no salt.
 */
export const insertEntriesSql = statement(
  'insert_ledger_entries',
  `insert into ledger_entries (organization_id, index, sequence, consent_type_id, channel, salt, hash)
   select h.organization_id, $2::bigint + v.position - 1, v.sequence, v.consent_type_id, v.channel,
     case when ${isKept} then ${part('$6', 32)} end, ${part('$7', 32)}
   from change_heads h cross join unnest($3::bigint[], $4::integer[], $5::text[])
     with ordinality as v(sequence, consent_type_id, channel, position)
   where h.organization_id = $1`,
)

/** $2: levels, $3: indexes, $4: the tiles, concatenated. */
export const insertTilesSql = statement(
  'insert_ledger_tiles',
  `insert into ledger_tiles (organization_id, level, index, data)
   select h.organization_id, v.level, v.index, ${part('$4', 8_192)}
   from change_heads h cross join unnest($2::integer[], $3::bigint[]) with ordinality as v(level, index, position)
   where h.organization_id = $1`,
)

/**
 * $2: the size before, $3: size, $4: edge, $5: checkpoint, $6: the time. Returns no row if the stored size differs from
 * $2.
 */
export const storeLedgerSql = statement(
  'store_ledger',
  `insert into ledgers (organization_id, size, edge, checkpoint, sealed_at) values ($1, $3, $4, $5, $6)
   on conflict (organization_id) do update set size = excluded.size, edge = excluded.edge, checkpoint = excluded.checkpoint,
     sealed_at = excluded.sealed_at where ledgers.size = $2::bigint
   returning size`,
)

/** $2: levels, $3: indexes. */
export const readTilesSql = statement(
  'read_ledger_tiles',
  `select t.level, t.index, t.data from unnest($2::integer[], $3::bigint[]) as v(level, index)
     join ledger_tiles t on t.organization_id = $1 and t.level = v.level and t.index = v.index`,
)

/** $2: the first index, $3: the index after the last. The data of the leaves, concatenated. */
export const readLeavesSql = statement(
  'read_ledger_leaves',
  `select string_agg(e.hash, ''::bytea order by e.index) as leaves
   from ledger_entries e where e.organization_id = $1 and e.index >= $2 and e.index < $3`,
)

/** The columns of an entry e. */
const entryColumns = 'e.index, e.sequence, e.consent_type_id, e.channel, e.salt, e.hash'

/** $2: sequence, $3: consent type, $4: channel. */
export const findEntrySql = statement(
  'find_ledger_entry',
  `select ${entryColumns} from ledger_entries e
   where e.organization_id = $1 and e.sequence = $2 and e.consent_type_id = $3 and e.channel = $4`,
)

/** The entries of the ledgers of all organizations. */
export const countAllEntriesSql = statement(
  'count_ledger_entries',
  'select coalesce(sum(l.size), 0)::float8 as entries from ledgers l',
)

/**
 * $2: person, $3: consent type, $4: channel, $5: the number of a change, or null for the answer in force. Also finds
 * answers of people who were merged into the person.
 */
export const findAnswerSql = statement(
  'find_answer',
  `select c.sequence from consent_history h join changes c on c.organization_id = $1 and c.entity_id = h.person_id
     and c.version = h.version
   where h.organization_id = $1 and h.consent_type_id = $3 and h.channel = $4
     and h.person_id = any(case when $5::bigint is null then array[coalesce((
       select (e.answers->concat($3::integer, ':', $4::text)->>'person_id')::uuid from entities e
       where e.organization_id = $1 and e.stack_id = 0 and e.id = $2
     ), $2)] else array(
       select $2::uuid union all
       select m.merged_id from merges m where m.organization_id = $1 and m.person_id = $2 and m.unmerged_sequence is null
     ) end)
     and (c.sequence = $5::bigint or ($5 is null and not h.superseded))
   order by h.version desc limit 1`,
)

/** $2: consent type, $3: version. */
export const readTextSql = statement(
  'read_text',
  `select t.version, t.language, t.text, t.url, t.created_at from consent_texts t
   where t.organization_id = $1 and t.consent_type_id = $2 and t.version = $3`,
)

/**
 * The state to audit. `position` is the last change whose answers are sealed, and `waiting` the number of answers of
 * later changes. Because of the order within the changes, PostgreSQL does not join all answers of the organization.
 */
export const beginAuditSql = statement(
  'begin_audit',
  `select o.key as organization, coalesce(l.size, 0) as size, l.edge, l.checkpoint, coalesce(f.sequence, 0) as position,
     (select count(*) from ledger_entries e where e.organization_id = $1 and (e.index < 0 or e.index >= coalesce(l.size, 0)))
       as entries_beyond,
     (select count(*) from ledger_tiles t where t.organization_id = $1) as tiles,
     (select count(*) from consent_history h where h.organization_id = $1) as answers, (
       select count(h.version) from changes c cross join lateral (
         select h.version from consent_history h
         where h.organization_id = $1 and h.person_id = c.entity_id and h.version = c.version
         order by h.consent_type_id, h.channel
       ) h
       where c.organization_id = $1 and c.sequence > coalesce(f.sequence, 0) and c.stack_id = 0
     ) as waiting
   from organizations o left join ledgers l on l.organization_id = $1
     left join followers f on f.organization_id = $1 and f.name = '${followerName}' and f.id = 0
   where o.id = $1`,
)

/** $2: the first index, $3: the index after the last. The entries in order of the index. */
export const readEntryRangeSql = statement(
  'read_entry_range',
  `select ${entryColumns} from ledger_entries e
   where e.organization_id = $1 and e.index >= $2 and e.index < $3 order by e.index`,
)

/** $2: limit. The texts whose hash differs from the hash in the answers to them. */
export const findForeignTextsSql = statement(
  'find_foreign_texts',
  `select t.consent_type_id, t.version from consent_texts t
   where t.organization_id = $1 and t.sha256 <> sha256(convert_to(t.text, 'UTF8')) order by t.consent_type_id, t.version limit $2`,
)

/** Whether an answer h of the history has this state and this time. */
const isAnswer = (state: string, pending: string, at: string) =>
  `not h.superseded and h.pending = ${pending} and (h.state and not h.pending) = ${state}
       and case when h.undated or h.collected_at is null then h.at else h.collected_at end = ${at}`

/**
 * $2: limit. The answers in force of people that are missing in the history, and the questions with an answer in the
 * history but none in force.
 */
export const findForeignAnswersSql = statement(
  'find_foreign_answers',
  `select e.id as person_id, split_part(a.key, ':', 1)::integer as consent_type_id, split_part(a.key, ':', 2) as channel
   from entities e cross join lateral jsonb_each(e.answers) a left join lateral (
     select true as is_found from consent_history h
     where h.organization_id = $1 and h.person_id = coalesce((a.value->>'person_id')::uuid, e.id)
       and h.consent_type_id = split_part(a.key, ':', 1)::integer and h.channel = split_part(a.key, ':', 2)
       and ${isAnswer("(a.value->>'state')::boolean", "coalesce((a.value->>'pending')::boolean, false)", "(a.value->>'answered_at')::timestamptz")}
     limit 1
   ) h on true
   where e.organization_id = $1 and e.stack_id = 0 and h.is_found is null
   union select h.person_id, h.consent_type_id, h.channel
   from consent_history h join entities e on e.organization_id = $1 and e.stack_id = 0 and e.id = h.person_id
   where h.organization_id = $1 and not h.superseded and not e.answers ? concat(h.consent_type_id, ':', h.channel)
   order by 1, 2, 3 limit $2`,
)

/**
 * $2: limit. The answers of addresses that are missing in the history. Answers of erased people are left out, because
 * they name no person.
 */
export const findForeignAddressAnswersSql = statement(
  'find_foreign_address_answers',
  `select b.sequence, b.consent_type_id, b.channel from address_answers b left join lateral (
     select true as is_found from changes c join consent_history h
       on h.organization_id = $1 and h.person_id = c.entity_id and h.version = c.version
     where c.organization_id = $1 and c.sequence = b.sequence and h.consent_type_id = b.consent_type_id and h.channel = b.channel
       and h.state = b.state
     limit 1
   ) h on true
   where b.organization_id = $1 and b.person_id is not null and h.is_found is null
   order by b.sequence, b.consent_type_id, b.channel limit $2`,
)
