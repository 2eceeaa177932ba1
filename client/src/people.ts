import type { BatchResult, Operation } from './batch.ts'
import { type BatchOptions, Entities } from './entities.ts'
import { type Address, identified, named } from './entity-reads.ts'
import { KithConnectionError } from './errors.ts'
import type { ImportAnswer, ImportOptions } from './import.ts'
import { segment } from './json.ts'
import type { CallOptions, WriteOptions, Written } from './options.ts'
import type { BodyOf, EntityOf, OrganizationSchema } from './organization.ts'
import { ndjson } from './stream.ts'
import type {
  BatchDryRun,
  DossierLine,
  DuplicateGroup,
  DuplicatesBody,
  DuplicatesPage,
  Erased,
  ErasureBody,
  MergeResult,
  UnmergeResult,
} from './wire.ts'

/** The values that a write recognizes its person by. `mobile` is the phone number with its country. */
export type MatchKind = 'external_id' | 'email' | 'mobile'

/** Tried in this order; the first value that anybody has decides. */
export type Match = readonly MatchKind[]

/** Exactly one of an email, a phone number and an external identifier. */
export type LookupKey =
  | { email: string; mobile_prefix?: never; mobile_number?: never; external_id?: never }
  | { mobile_number: string; mobile_prefix?: string; email?: never; external_id?: never }
  | { external_id: string; email?: never; mobile_prefix?: never; mobile_number?: never }

/** A value of one of the kinds that a person is recognized by. The default is the external identifier alone. */
type RecognizedBy<Kind> = Kind extends 'email'
  ? { email: string }
  : Kind extends 'mobile'
    ? { mobile_number: string }
    : { external_id: string }

/** The kinds that `match` names. */
type KindOf<M> = M extends Match ? M[number] : 'external_id'

type PeopleUpsert<S extends OrganizationSchema, Kind> = {
  op: 'upsert'
  external_id?: string
  body: BodyOf<S, 'people'>
  if_match?: number | '*'
} & (Kind extends 'external_id' ? { external_id: string } : { body: RecognizedBy<Kind> })

/** One write of a batch of people. An upsert has a value of one of the kinds that the `match` of the batch names. */
export type PeopleOperation<S extends OrganizationSchema, Kind extends MatchKind = MatchKind> =
  | Exclude<Operation<S, 'people'>, { op: 'upsert' }>
  | PeopleUpsert<S, Kind>

/** The other person of a merge: by its external identifier, or by its internal one. */
export type MergeFrom = { from: string; from_id?: never } | { from_id: string; from?: never }

/** The options of a merge and of an unmerge. */
export type MergeOptions = WriteOptions

/** The outcome of a merge. `person` is the survivor. */
export type Merged<S extends OrganizationSchema> = Omit<MergeResult, 'person'> & { person: EntityOf<S, 'people'> }

/** The outcome of an unmerge. `person` is the survivor, and `unmerged` the person who returned. */
export type Unmerged<S extends OrganizationSchema> = Omit<UnmergeResult, 'person' | 'unmerged'> &
  Record<'person' | 'unmerged', EntityOf<S, 'people'>>

/** The options of a search for duplicates: the keys to search `by`, and the `size` of a page (20 by default, at most 100). */
export type DuplicatesOptions = Pick<DuplicatesBody, 'by' | 'size'> & CallOptions

/** Why a person is erased, and which records with the person. */
export type ErasureReason = Omit<ErasureBody, 'dry_run'>

/**
 * The options of an erasure. With `dryRun`, nothing is erased. With `ifMatch`, a person who is deleted or erased is refused with 412:
 * `answerLost` of the error tells that an earlier attempt may have erased the person.
 */
export type ErasureOptions = CallOptions & Pick<WriteOptions, 'dryRun' | 'ifMatch'>

type Person<S extends OrganizationSchema> = EntityOf<S, 'people'>
type Body<S extends OrganizationSchema> = BodyOf<S, 'people'>

/** The endpoints of people: those of {@link Entities}, and those about who they are and what they have a right to. */
export class People<S extends OrganizationSchema> extends Entities<S, 'people'> {
  /**
   * Finds the people who have an email, a phone number or an external identifier, at most 100. The email is compared in lower case.
   *
   * ```ts
   * await client.people.create({ external_id: 'joan', email: 'Joan@example.com' })
   * const { items } = await client.people.lookup({ email: 'joan@example.com' })
   * console.log(items[0]?.external_id) // joan
   * ```
   */
  lookup(key: LookupKey, options?: CallOptions): Promise<{ items: Person<S>[]; has_more: boolean }> {
    return this.transport.send('POST /v1/people/lookup', { body: key }, options)
  }

  /**
   * Creates the person if it does not exist, else changes it like `patch`. A token without the read scope receives only
   * the identifiers. With `match`, a person is also recognized by email or phone. An `external_id` that differs from that of
   * the person becomes an alias. Rejects with `duplicate_entry` if several people have the value; `details` names them.
   *
   * ```ts
   * const match = ['external_id', 'email'] as const
   * await client.people.upsert({ match, external_id: 'shop-1', email: 'mary@example.com' })
   * const person = await client.people.upsert({ match, external_id: 'news-7', email: 'Mary@example.com' })
   * console.log(person.external_id, (await client.people.get('news-7')).id === person.id) // shop-1 true
   * ```
   */
  override upsert<U extends WriteOptions = Record<never, never>, const M extends Match = readonly ['external_id']>(
    body: Body<S> & { match?: M } & RecognizedBy<M[number]>,
    options?: U,
  ): Promise<Written<U, Person<S>>> {
    return super.upsert(body as Body<S> & { external_id: string }, options)
  }

  /**
   * Merges another person into a person, who survives: its unset fields are filled, links move to it, and the identifiers of the other
   * lead to it. `dryRun` returns what would change, and changes nothing.
   *
   * ```ts
   * await client.people.create({ external_id: 'emmy', first_name: 'Emmy' })
   * await client.people.create({ external_id: 'emmy-news', email: 'emmy@example.com' })
   * const { changes } = await client.people.merge('emmy', { from: 'emmy-news' }, { dryRun: true })
   * console.log(changes.fields[0]?.path) // /email
   * const { person } = await client.people.merge('emmy', { from: 'emmy-news' })
   * console.log(person.email, (await client.people.get('emmy-news')).id === person.id) // emmy@example.com true
   * ```
   */
  merge(external_id: string, from: MergeFrom, options?: MergeOptions): Promise<Merged<S>> {
    return this.#merge(named(external_id), from, options)
  }

  /**
   * Merges another person into a person, by the internal identifier of the survivor.
   *
   * ```ts
   * await client.people.create({ external_id: 'sofia-news' })
   * const { id } = await client.people.create({ external_id: 'sofia' })
   * console.log((await client.people.mergeById(id, { from: 'sofia-news' })).merged.external_id) // sofia-news
   * ```
   */
  mergeById(id: string, from: MergeFrom, options?: MergeOptions): Promise<Merged<S>> {
    return this.#merge(identified(id), from, options)
  }

  /**
   * Undoes a merge: the other person returns, and what was written since stays with the survivor.
   *
   * ```ts
   * await client.people.create({ external_id: 'maria' })
   * await client.people.create({ external_id: 'maria-news', language: 'it' })
   * await client.people.merge('maria', { from: 'maria-news' })
   * const { person, unmerged } = await client.people.unmerge('maria', { from: 'maria-news' })
   * console.log(person.language, unmerged.language) // null it
   * ```
   */
  unmerge(external_id: string, from: MergeFrom, options?: MergeOptions): Promise<Unmerged<S>> {
    return this.#unmerge(named(external_id), from, options)
  }

  /**
   * Undoes a merge, by the internal identifier of the survivor.
   *
   * ```ts
   * const { id } = await client.people.create({ external_id: 'noor' })
   * const other = await client.people.create({ external_id: 'noor-news' })
   * await client.people.mergeById(id, { from_id: other.id })
   * console.log((await client.people.unmergeById(id, { from_id: other.id })).unmerged.external_id) // noor-news
   * ```
   */
  unmergeById(id: string, from: MergeFrom, options?: MergeOptions): Promise<Unmerged<S>> {
    return this.#unmerge(identified(id), from, options)
  }

  #merge({ at, params }: Address, body: MergeFrom, options: MergeOptions | undefined): Promise<Merged<S>> {
    return this.transport.send(`POST /v1/people${at}/merge`, { params, body }, options)
  }

  #unmerge({ at, params }: Address, body: MergeFrom, options: MergeOptions | undefined): Promise<Unmerged<S>> {
    return this.transport.send(`POST /v1/people${at}/unmerge`, { params, body }, options)
  }

  /**
   * Iterates the groups of people who share an email, a phone number, or name and date of birth.
   *
   * ```ts
   * await client.people.create({ external_id: 'ada-2', email: 'Twin@example.com' })
   * await client.people.create({ external_id: 'ada-3', email: 'twin@example.com' })
   * for await (const { people, score } of client.people.duplicates({ by: ['email'] }))
   *   console.log(people.map(person => person.external_id).join(), score) // ada-2,ada-3 0.95
   * ```
   */
  async *duplicates(options: DuplicatesOptions = {}): AsyncGenerator<DuplicateGroup, void, undefined> {
    let position: Pick<DuplicatesBody, 'cursor'> | undefined = {}
    while (position) {
      const { items, next_cursor }: DuplicatesPage = await this.duplicatesPage({ ...options, ...position })
      yield* items
      position = next_cursor === null ? undefined : { cursor: next_cursor }
    }
  }

  /**
   * Reads one page of duplicates. It may have fewer groups than its size, even none, while `has_more` is true.
   *
   * ```ts
   * const { items, next_cursor } = await client.people.duplicatesPage({ by: ['mobile'], size: 100 })
   * console.log(items.length, next_cursor) // 0 null
   * ```
   */
  duplicatesPage({ by, size, cursor, ...options }: DuplicatesBody & CallOptions = {}): Promise<DuplicatesPage> {
    return this.transport.send('POST /v1/people/duplicates', { body: { by, size, cursor } }, options)
  }

  /**
   * Reads everything that is held about a person, line by line and from one moment. Also the last name of a deleted person leads to
   * the dossier. Takes the scopes `people:read`, `consents:read`, `changes:read` and `records:read`. Throws a
   * {@link KithConnectionError} if the dossier is cut off.
   *
   * ```ts
   * for await (const line of client.people.dossier('ada')) {
   *   if (line.type === 'about') console.log(line.person.state) // active
   *   if (line.type === 'end') console.log(line.lines.profile) // 1
   * }
   * ```
   */
  dossier(external_id: string, options?: CallOptions): AsyncIterable<DossierLine> {
    return this.#dossier(`/${segment(external_id)}`, options)
  }

  /**
   * Reads everything that is held about a person by the internal identifier, also of one who was deleted.
   *
   * ```ts
   * const { id } = await client.people.get('ada')
   * await client.people.delete('ada')
   * for await (const line of client.people.dossierById(id)) if (line.type === 'about') console.log(line.person.state) // deleted
   * ```
   */
  dossierById(id: string, options?: CallOptions): AsyncIterable<DossierLine> {
    return this.#dossier(`/internal/${segment(id)}`, options)
  }

  #dossier(path: string, options: CallOptions | undefined): AsyncIterable<DossierLine> {
    const request = { method: 'GET', path: `${this.path}${path}/dossier`, options, format: ndjson } as const
    return { [Symbol.asyncIterator]: () => completeLines(this.transport.stream(request)) }
  }

  /**
   * Erases a person, existing or deleted, and returns the certificate. It cannot be undone, so `dryRun` first tells what
   * would be removed. Asked again, the result is the same. `completed` is false while a very long log is still being erased.
   *
   * ```ts
   * const { certificate, erasure } = await client.people.erase('ada', { reason: 'Request of 2026-01-01' })
   * console.log(certificate?.split('.').length, erasure.removed.entities) // 3 1
   * ```
   */
  erase(external_id: string, reason: ErasureReason, options?: ErasureOptions): Promise<Erased> {
    return this.#erase(named(external_id), reason, options)
  }

  /**
   * Erases a person by the internal identifier, also one who was deleted.
   *
   * ```ts
   * const { id } = await client.people.get('ada')
   * await client.people.delete('ada')
   * const { completed } = await client.people.eraseById(id, { reason: 'Request of 2026-01-01' })
   * console.log(completed) // true
   * ```
   */
  eraseById(id: string, reason: ErasureReason, options?: ErasureOptions): Promise<Erased> {
    return this.#erase(identified(id), reason, options)
  }

  #erase({ at, params }: Address, body: ErasureReason, options: ErasureOptions | undefined): Promise<Erased> {
    return this.transport.send(`POST /v1/people${at}/erase`, { params, body }, options)
  }

  /**
   * Sends up to 1,000 writes in one request. Each succeeds or fails on its own. With `atomic`, all succeed or none
   * does, and the first failure rejects the call. `match` applies to the upserts.
   *
   * ```ts
   * const { items } = await client.people.batch(
   *   [
   *     { op: 'upsert', body: { email: 'linus@example.com', first_name: 'Linus' } },
   *     { op: 'upsert', external_id: 'crm-9', body: { email: 'Linus@example.com' } },
   *   ],
   *   { match: ['email'] },
   * )
   * console.log(items.map(({ status }) => status).join()) // 201,200
   * ```
   */
  override batch<U extends BatchOptions & { match?: Match } = Record<never, never>>(
    operations: readonly PeopleOperation<S, KindOf<U['match']>>[],
    options?: U,
  ): Promise<Written<U, BatchResult, BatchDryRun>> {
    return super.batch(operations as readonly Operation<S, 'people'>[], options)
  }

  /**
   * Upserts any number of people and sends them while it iterates `lines`, like {@link Entities.import}. With `match`, a person is
   * also recognized by email or phone, and the lines of one person take effect in their order.
   *
   * ```ts
   * const lines = [{ email: 'rosa@example.com' }, { email: 'Rosa@example.com', first_name: 'Rosa' }]
   * for await (const answer of client.people.import(lines, { match: ['email'] }))
   *   if ('received' in answer) console.log(answer.created, answer.updated) // 1 1
   * ```
   */
  override import(
    lines: AsyncIterable<Body<S> | string> | Iterable<Body<S> | string>,
    options: ImportOptions & { match?: Match } = {},
  ): AsyncIterable<ImportAnswer> {
    return super.import(lines, options)
  }
}

async function* completeLines(lines: AsyncGenerator<unknown>): AsyncGenerator<DossierLine, void, undefined> {
  let isComplete = false
  for await (const line of lines as AsyncGenerator<DossierLine>) {
    isComplete = line.type === 'end'
    yield line
  }
  if (!isComplete) throw new KithConnectionError('The dossier is incomplete: its last line is missing.', {})
}
