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

// Every table of the database is in one of the three lists of this file. A test compares them with the catalog of PostgreSQL.

/** The values that the statements take as `$2`. A statement runs once with each of its values, and not at all without one. */
export type Subjects = {
  /** The ids of the entities. */
  entities: string[][]
  /** The ids of the people among them. */
  people: string[][]
  /** The id of each person. */
  person: string[]
  /** The ids of the people and the emails and phones that they had, as JSON: {people, values}. */
  addresses: string[]
  /** The ids of the people, if the organization has ever had a segment. */
  members: string[][]
  /** The ids of the entities, unless further transactions delete the links to them. */
  targets: string[][]
  /** The part of the log that is emptied, as JSON: [{id, after, until}], each with the versions after `after` up to `until`. */
  log: string[]
  /** The identifiers that the entities ever had, as JSON and URLs print them. */
  texts: string[][]
  /** The values that get tombstones. */
  values: string[][]
}

/** A table, a statement that removes or empties its rows of an erased entity and returns their number, and what it takes. */
export type ErasedTable = { table: string; statement: Statement; of: keyof Subjects }

/** The statements of an erasure, in the order in which they run. */
export const erasedTables: readonly ErasedTable[] = [
  // Receivers may have answered with values that a merge gave to another person until it was undone.
  { table: 'webhook_deliveries', statement: blankFilledDeliveriesSql, of: 'person' },
  // The log of a person into whom this one was merged has its values, also after the merge was undone.
  { table: 'changes', statement: blankFilledSql, of: 'person' },
  // The links of the entity name its targets.
  { table: 'links', statement: deleteOwnLinksSql, of: 'entities' },
  // The links to the entity name their sources.
  { table: 'links', statement: deleteLinksToSql, of: 'targets' },
  // Aliases are further identifiers of the person.
  { table: 'aliases', statement: deleteAliasesSql, of: 'people' },
  // The row of a merge has the moved values, to undo it. The ids stay, so that the merge stays visible.
  { table: 'merges', statement: blankMergesSql, of: 'people' },
  // With the salt, a guess of an answer can be compared with its hash. The hash stays, so that the ledger verifies.
  { table: 'ledger_entries', statement: eraseSaltsSql, of: 'people' },
  // The history has the answers with their evidence.
  { table: 'consent_history', statement: deleteAnswersSql, of: 'people' },
  // The rows name the addresses and the people who answered. A refusal stays under the keyed hash, so that the address
  // is not written to again by mistake.
  { table: 'address_answers', statement: eraseAddressesSql, of: 'addresses' },
  // Receivers may have answered with the values that they got. Deliveries that wait are not sent any more.
  { table: 'webhook_deliveries', statement: eraseDeliveriesSql, of: 'log' },
  // The log has all earlier values. Numbers, times and operations stay, because the log has no gaps.
  { table: 'changes', statement: blankChangesSql, of: 'log' },
  // The responses of the last day show the entity, also those to requests about others.
  { table: 'idempotency_keys', statement: deleteResponsesSql, of: 'texts' },
  // Changes of others show the entity by its identifiers, and receivers may have answered with them.
  { table: 'webhook_deliveries', statement: blankQuotingDeliveriesSql, of: 'texts' },
  // The row has the times of messages to the address. A suppressed address stays suppressed by its keyed hash.
  { table: 'deliverability', statement: giveUpAddressesSql, of: 'values' },
  // Refusals show why a job did not change the entity.
  { table: 'job_refusals', statement: deleteRefusalsSql, of: 'entities' },
  // The moves into and out of segments show former properties of the person.
  { table: 'segment_changes', statement: deleteToldSql, of: 'members' },
  // A notice shows that the person is in a segment.
  { table: 'retention_notices', statement: deleteRetentionNoticesSql, of: 'people' },
  // Holds name the person.
  { table: 'person_holds', statement: leaveHoldsSql, of: 'people' },
  { table: 'set_aside_people', statement: leaveSetAsidesSql, of: 'people' },
  // The segments of a person show its properties.
  { table: 'segment_members', statement: deleteMembershipsSql, of: 'members' },
]

/** The tables from which the module that stores their rows also erases them, called by erase-entities.ts. */
export const tablesErasedElsewhere: Readonly<Record<string, string>> = {
  access_batches:
    'The identifiers of those who were shown or written (accesses/forget.ts). The entries stay, with their counts.',
  entities: 'The change `erase` deletes the row, as every deletion does (entities/write/store.ts).',
  terms: 'The index terms go with the row (entities/write/terms.ts).',
  search_documents: 'The words of the entity (entities/indexes/search-index.ts).',
  search_features: 'The parts of words that no other entity has.',
  search_words: 'The words that no other entity has.',
}

/** The tables that an erasure leaves as they are or adds to, and why. */
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
