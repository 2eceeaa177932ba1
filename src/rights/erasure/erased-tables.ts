import { eraseAddressesSql } from '../../consents/address-answers-sql.ts'
import type { Statement } from '../../db/db.ts'
import {
  blankChangesSql,
  blankMergesSql,
  blankQuotingDeliveriesSql,
  deleteAliasesSql,
  deleteAnswersSql,
  deleteLinksToSql,
  deleteMembershipsSql,
  deleteOwnLinksSql,
  deleteRefusalsSql,
  deleteResponsesSql,
  deleteRetentionNoticesSql,
  deleteToldSql,
  eraseDeliveriesSql,
  eraseSaltsSql,
  giveUpAddressesSql,
  leaveHoldsSql,
  leaveSetAsidesSql,
} from './erased-tables-sql.ts'
import { blankFilledDeliveriesSql, blankFilledSql } from './filled-log-sql.ts'

// Every table of the database is in one of the three lists of this file. A test compares them with PostgreSQL's
// catalog.

/**
 * The values for `$2` of the statements. A statement runs once for each of its values, so it does not run without one.
 */
export type Subjects = {
  /** The ids of the entities. */
  entities: string[][]
  /** The ids of the people among the entities. */
  people: string[][]
  /** The id of each person. */
  person: string[]
  /** The ids of the people and the emails and phones that they had, as JSON: {people, values}. */
  addresses: string[]
  /** The ids of the people, if the organization ever had a segment. */
  members: string[][]
  /** The ids of the entities, unless later transactions delete the links to them. */
  targets: string[][]
  /** The changes to empty, as JSON: [{id, after, until}] with the versions after `after` up to `until`. */
  log: string[]
  /** All identifiers that the entities ever had, in the forms of JSON and of URLs. */
  texts: string[][]
  /** The values that get tombstones. */
  values: string[][]
}

/**
 * A table, the statement that removes or empties the table's rows about an erased entity and returns their number, and
 * the statement's subject.
 */
export type ErasedTable = { table: string; statement: Statement; of: keyof Subjects }

/** The statements of an erasure, in the order in which they run. */
export const erasedTables: readonly ErasedTable[] = [
  // Receivers may have answered with values that another person had between a merge and its unmerge.
  { table: 'webhook_deliveries', statement: blankFilledDeliveriesSql, of: 'person' },
  // The log of a person into whom this one was merged has its values, even after the unmerge.
  { table: 'changes', statement: blankFilledSql, of: 'person' },
  // The links of the entity name its targets.
  { table: 'links', statement: deleteOwnLinksSql, of: 'entities' },
  // The links to the entity name their sources.
  { table: 'links', statement: deleteLinksToSql, of: 'targets' },
  // Aliases are further identifiers of the person.
  { table: 'aliases', statement: deleteAliasesSql, of: 'people' },
  // The row of a merge has the moved values, for an unmerge. The ids stay, so that the merge stays visible.
  { table: 'merges', statement: blankMergesSql, of: 'people' },
  // With the salt, a guessed answer could be compared with its hash. The hash stays, so that the ledger verifies.
  { table: 'ledger_entries', statement: eraseSaltsSql, of: 'people' },
  // The history has the answers with their evidence.
  { table: 'consent_history', statement: deleteAnswersSql, of: 'people' },
  // The rows name the addresses and the people who answered. A refusal stays under the keyed hash, so that kith does
  // not allow messages to the address by mistake.
  { table: 'address_answers', statement: eraseAddressesSql, of: 'addresses' },
  // Receivers may have answered with the values that they got. Waiting deliveries are not sent.
  { table: 'webhook_deliveries', statement: eraseDeliveriesSql, of: 'log' },
  // The log has all earlier values. Numbers, times and operations stay, so that the log has no gaps.
  { table: 'changes', statement: blankChangesSql, of: 'log' },
  // The responses of the last day show the entity, including responses to requests about other entities.
  { table: 'idempotency_keys', statement: deleteResponsesSql, of: 'texts' },
  // Changes of other entities contain its identifiers, and receivers may have answered with them.
  { table: 'webhook_deliveries', statement: blankQuotingDeliveriesSql, of: 'texts' },
  // The row has the times of messages to the address. A suppressed address stays suppressed under its keyed hash.
  { table: 'deliverability', statement: giveUpAddressesSql, of: 'values' },
  // Refusals show why a job did not change the entity.
  { table: 'job_refusals', statement: deleteRefusalsSql, of: 'entities' },
  // The entries and exits of segments show former properties of the person.
  { table: 'segment_changes', statement: deleteToldSql, of: 'members' },
  // A notice shows that the person is in a segment.
  { table: 'retention_notices', statement: deleteRetentionNoticesSql, of: 'people' },
  // Holds name the person.
  { table: 'person_holds', statement: leaveHoldsSql, of: 'people' },
  { table: 'set_aside_people', statement: leaveSetAsidesSql, of: 'people' },
  // The segments of a person show its properties.
  { table: 'segment_members', statement: deleteMembershipsSql, of: 'members' },
]

/** The tables whose rows the module that stores them also erases. erase-entities.ts calls these modules. */
export const tablesErasedElsewhere: Readonly<Record<string, string>> = {
  access_batches:
    'The identifiers of those who were shown or written (accesses/forget.ts). The entries stay, with their counts.',
  entities: 'The change `erase` deletes the row, as every deletion does (entities/write/store.ts).',
  terms: 'The index terms go with the row (entities/write/terms.ts).',
  search_documents: 'The words of the entity (entities/indexes/search-index.ts).',
  search_features: 'The parts of words that no other entity has.',
  search_words: 'The words that no other entity has.',
}

/** The tables that an erasure leaves unchanged or adds to, and the reason. */
export const keptTables: Readonly<Record<string, string>> = {
  accounts: 'who signs in to the console',
  access_index: 'hashes of 32 bits of internal identifiers',
  attributes: 'definitions',
  backups: 'the moments of backups',
  change_heads: 'counters of an organization',
  clients: 'programs that call the API',
  consent_texts: 'the texts that everybody reads',
  consent_types: 'definitions',
  deliverability_sources: 'mail providers and their secrets',
  deliverability_tokens: 'hashes of requests of mail providers, for some days',
  erased_answers: 'hashes with salts that nothing keeps',
  erasures: 'the erasures themselves: internal identifiers and certificates',
  fills: 'the position of a background fill, an internal identifier',
  followers: 'positions in the change log',
  sql_views: 'the names of schemas and of roles of PostgreSQL',
  import_mappings: 'the names of columns, and the fields that they became',
  imports: 'the counts and authors of imports',
  jobs: 'what a job is to do, until it ends, and then its counts and author',
  ledger_keys: 'keys',
  ledger_tiles: 'hashes of salted answers',
  ledgers: 'hashes of salted answers',
  link_keys: 'keys',
  migrations: 'the migrations that ran',
  name_versions: 'keyed hashes of names, with the versions at which they became free',
  organization_settings: 'how pages look',
  organizations: 'tenants',
  rate_limits: 'counters under hashes of token subjects',
  retention_rules: 'definitions',
  retention_runs: 'the counts of rules',
  search_indexes: 'the position of a background fill, an internal identifier',
  segment_checks: 'internal identifiers to look at again',
  segments: 'definitions',
  roles: 'definitions',
  sessions: 'who operates the console, for twelve hours',
  sign_in_codes: 'who is invited to the console, for a minute',
  signing_keys: 'keys',
  sort_indexes: 'the fields that pages are sorted by',
  stacks: 'definitions',
  tokens: 'who works with the service, until 30 days after the end of the token',
  tombstone_keys: 'keys',
  tombstones: 'keyed hashes of erased identifiers, so that the person does not come back by mistake',
  webhooks: 'receivers',
}
