import { addressOf, type EntityAddress } from './address.ts'
import type { BatchResult, Operation } from './batch.ts'
import { type BatchOptions, Entities } from './entities.ts'
import { KithConnectionError } from './errors.ts'
import { segment } from './json.ts'
import { Listing, type PageOptions, pageOf } from './listing.ts'
import type { Call, CallOptions, WriteOptions, Written } from './options.ts'
import type { EntityOf, OrganizationSchema, PatchOf } from './organization.ts'
import { htmlPage, ndjson } from './stream.ts'
import type { pageLanguages } from './vocabulary.ts'
import type {
  BatchDryRun,
  DossierLine,
  DuplicateGroup,
  DuplicatesBody,
  DuplicatesOf,
  Erased,
  ErasureBody,
  ListedSetAside,
  MergeBody,
  MergeResult,
  SetAside,
  SetAsideBody,
  UnmergeResult,
} from './wire.ts'

/** The kinds of values by which a write recognizes its person. `mobile` is the phone number with its country. */
export type MatchKind = 'external_id' | 'email' | 'mobile'

/** The kinds are tried in this order. The first value that a stored person has decides. */
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
  body: PatchOf<S, 'people'>
  if_match?: number | '*'
} & (Kind extends 'external_id' ? { external_id: string } : { body: RecognizedBy<Kind> })

/** One write of a batch of people. An upsert has a value of one of the kinds that the `match` of the batch names. */
export type PeopleOperation<S extends OrganizationSchema, Kind extends MatchKind = MatchKind> =
  | Exclude<Operation<S, 'people'>, { op: 'upsert' }>
  | PeopleUpsert<S, Kind>

/** The other person of a merge or an unmerge. */
export type MergeFrom = { from: EntityAddress }

/**
 * The choice of a person's value for each field of a merge: a profile field, `attribute_values.<key>` or `external_id`.
 * If the chosen person has no value, the survivor has none.
 */
export type MergeKeep = NonNullable<MergeBody['keep']>

/** The other person of a merge, and the choices of values by field. */
export type MergeWith = MergeFrom & { keep?: MergeKeep }

/** People who are set aside as different people, by one kind of identifier. */
export type PeopleSetAside = { ids: readonly string[] } | { external_ids: readonly string[] }

/** The options of a merge and of an unmerge. */
export type MergeOptions = WriteOptions

/** The outcome of a merge. `person` is the survivor. */
export type Merged<S extends OrganizationSchema> = Omit<MergeResult, 'person'> & { person: EntityOf<S, 'people'> }

/** The outcome of an unmerge. `person` is the survivor, and `unmerged` the restored person. */
export type Unmerged<S extends OrganizationSchema> = Omit<UnmergeResult, 'person' | 'unmerged'> &
  Record<'person' | 'unmerged', EntityOf<S, 'people'>>

/** The options of a search for duplicates: the keys to search `by`, and the `size` of a page (20 by default, at most 100). */
export type DuplicatesOptions = Pick<DuplicatesBody, 'by'> & PageOptions & CallOptions

/** The reason of an erasure, and the records to erase with the person. */
export type ErasureReason = Omit<ErasureBody, 'dry_run'>

/**
 * The options of an erasure. With `dryRun`, nothing is erased. With `ifMatch`, the service refuses a deleted or erased
 * person with 412. If `answerLost` of the error is true, an earlier attempt may have erased the person.
 */
export type ErasureOptions = CallOptions & Pick<WriteOptions, 'dryRun' | 'ifMatch'>

type Person<S extends OrganizationSchema> = EntityOf<S, 'people'>
type Body<S extends OrganizationSchema> = PatchOf<S, 'people'>

/**
 * The endpoints of people: the endpoints of {@link Entities}, and the endpoints for identity and for the rights of
 * people.
 */
export class People<S extends OrganizationSchema> extends Entities<S, 'people'> {
  /**
   * Finds the people who have an email, a phone number or an external identifier, at most 100. Emails are compared in
   * lower case.
   *
   * ```ts
   * await client.people.create({ external_id: 'joan', email: 'Joan@example.com' })
   * const { items } = await client.people.lookup({ email: 'joan@example.com' })
   * console.log(items[0]?.external_id) // joan
   * ```
   */
  lookup(key: LookupKey, options?: CallOptions): Call<{ items: Person<S>[]; has_more: boolean }> {
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
  ): Call<Written<U, Person<S>>> {
    return super.upsert(body as Body<S> & { external_id: string }, options)
  }

  /**
   * Merges another person into a person, who survives. The survivor gets values for its unset fields, links move to it,
   * and the other person's identifiers lead to it. `dryRun` returns what would change, and changes nothing.
   *
   * ```ts
   * await client.people.create({ external_id: 'emmy', first_name: 'Emmy' })
   * await client.people.create({ external_id: 'emmy-news', email: 'emmy@example.com' })
   * const { changes } = await client.people.merge('emmy', { from: 'emmy-news' }, { dryRun: true })
   * console.log(changes.fields[0]?.path) // /email
   * const { person } = await client.people.merge('emmy', { from: 'emmy-news' })
   * console.log(person.email, (await client.people.get('emmy-news')).id === person.id) // emmy@example.com true
   * ```
   *
   * `keep` chooses between the values of the two people:
   *
   * ```ts
   * await client.people.create({ external_id: 'sonja', email: 'sonja@old.example' })
   * await client.people.create({ external_id: 'sonja-shop', email: 'sonja@new.example' })
   * const chosen = await client.people.merge('sonja', { from: 'sonja-shop', keep: { email: 'other' } })
   * console.log(chosen.person.email) // sonja@new.example
   * ```
   */
  merge(address: EntityAddress, { keep, ...other }: MergeWith, options?: MergeOptions): Call<Merged<S>> {
    const { at, params } = addressOf(address)
    const body = { ...bodyOf(other), ...(keep && { keep }) }
    return this.transport.send(`POST /v1/people${at}/merge`, { params, body }, options)
  }

  /**
   * Undoes a merge: the other person is restored, and later writes stay with the survivor.
   *
   * ```ts
   * await client.people.create({ external_id: 'maria' })
   * await client.people.create({ external_id: 'maria-news', language: 'it' })
   * await client.people.merge('maria', { from: 'maria-news' })
   * const { person, unmerged } = await client.people.unmerge('maria', { from: 'maria-news' })
   * console.log(person.language, unmerged.language) // null it
   * ```
   */
  unmerge(address: EntityAddress, other: MergeFrom, options?: MergeOptions): Call<Unmerged<S>> {
    const { at, params } = addressOf(address)
    return this.transport.send(`POST /v1/people${at}/unmerge`, { params, body: bodyOf(other) }, options)
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
  duplicates({ by, size, after, ...options }: DuplicatesOptions = {}): Listing<DuplicateGroup> {
    const read = (cursor?: string) =>
      this.transport.send('POST /v1/people/duplicates', { body: { by, size, cursor } }, options)
    return new Listing(cursor => pageOf(read(cursor), () => ''), after)
  }

  /**
   * Finds the people who may be the same as a person, the likeliest first, at most `limit` (20 by default).
   *
   * ```ts
   * await client.people.create({ external_id: 'rosa', email: 'Rosa@example.com' })
   * await client.people.create({ external_id: 'rosa-2', email: 'rosa@example.com' })
   * const { items } = await client.people.duplicatesOf('rosa')
   * console.log(items.map(({ person, score }) => `${person.external_id} ${score}`).join()) // rosa-2 0.95
   * ```
   */
  duplicatesOf(
    address: EntityAddress,
    { limit, ...options }: { limit?: number } & CallOptions = {},
  ): Call<DuplicatesOf> {
    const { at, params } = addressOf(address)
    return this.transport.send(`GET /v1/people${at}/duplicates`, { params, query: { limit } }, options)
  }

  /**
   * Sets aside people who look alike: they are all different people, so the search for duplicates omits their pairs.
   *
   * ```ts
   * await client.people.create({ external_id: 'max', email: 'Family@example.com' })
   * await client.people.create({ external_id: 'moritz', email: 'family@example.com' })
   * const { id } = await client.people.setAside({ external_ids: ['max', 'moritz'] })
   * console.log((await client.people.duplicatesOf('max')).items.length) // 0
   * console.log((await client.people.setAsides().all()).length) // 1
   * await client.people.takeBackSetAside(id)
   * console.log((await client.people.duplicatesOf('max')).items.length) // 1
   * ```
   */
  setAside(people: PeopleSetAside, options?: CallOptions): Call<SetAside> {
    return this.transport.send('POST /v1/people/duplicates/set-aside', { body: people as SetAsideBody }, options)
  }

  /** Lists the set-asides, newest first. `after` is the id of the last set-aside of the previous page. */
  setAsides({ size, after, ...options }: PageOptions & CallOptions = {}): Listing<ListedSetAside> {
    const read = (before?: string) =>
      this.transport.send('GET /v1/people/duplicates/set-aside', { query: { before, limit: size } }, options)
    return new Listing(before => pageOf(read(before), ({ id }) => id), after)
  }

  /** Removes a set-aside, so that its people may be found as duplicates again. */
  takeBackSetAside(id: string, options?: CallOptions): Call<true> {
    return this.transport.send('DELETE /v1/people/duplicates/set-aside/{uuid}', { params: { uuid: id } }, options)
  }

  /**
   * Reads all stored data about a person, line by line and from one moment. The last external identifier of a deleted
   * person also finds the dossier. Takes the scopes `people:read`, `consents:read`, `changes:read` and `records:read`.
   * Throws a {@link KithConnectionError} if the dossier is cut off.
   *
   * ```ts
   * for await (const line of client.people.dossier('ada')) {
   *   if (line.type === 'about') console.log(line.person.state) // active
   *   if (line.type === 'end') console.log(line.lines.profile) // 1
   * }
   * ```
   */
  dossier(address: EntityAddress, options?: CallOptions): AsyncIterable<DossierLine> {
    const request = { method: 'GET', path: dossierPath(address), options, format: ndjson } as const
    return { [Symbol.asyncIterator]: () => completeLines(this.transport.stream(request)) }
  }

  /**
   * Reads all stored data about a person as an HTML page for the person, in parts. `language` selects the language of
   * the page, by default the person's. `onOtherHolders` is called with the internal identifiers of other people who had
   * the external identifier. Takes the scopes of {@link dossier}, and throws the same errors.
   *
   * ```ts
   * let page = ''
   * for await (const part of client.people.dossierPage('ada', { language: 'de' })) page += part
   * console.log(page.includes('<html lang="de">')) // true
   * ```
   */
  dossierPage(address: EntityAddress, options: DossierPageOptions = {}): AsyncIterable<string> {
    const { language, onOtherHolders, ...callOptions } = options
    const path = `${dossierPath(address)}${language === undefined ? '' : `?language=${language}`}`
    const onResponse = (headers: Headers) => {
      const others = headers.get('Kith-Other-Holders')
      if (others !== null) onOtherHolders?.(others.split(', '))
    }
    const request = { method: 'GET', path, options: callOptions, format: htmlPage, onResponse } as const
    return { [Symbol.asyncIterator]: () => completePage(this.transport.stream(request)) }
  }

  /**
   * Erases an existing or deleted person, and returns the certificate. An erasure cannot be undone, so first use
   * `dryRun` to see what it would remove. A repeated call returns the same result. `completed` is false while a very
   * long log is still being erased.
   *
   * ```ts
   * const { certificate, erasure } = await client.people.erase('ada', { reason: 'Request of 2026-01-01' })
   * console.log(certificate?.split('.').length, erasure.removed.entities) // 3 1
   * ```
   */
  erase(address: EntityAddress, reason: ErasureReason, options?: ErasureOptions): Call<Erased> {
    const { at, params } = addressOf(address)
    return this.transport.send(`POST /v1/people${at}/erase`, { params, body: reason }, options)
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
  ): Call<Written<U, BatchResult, BatchDryRun>> {
    return super.batch(operations as readonly Operation<S, 'people'>[], options)
  }
}

/** The options of a dossier as a page. */
export type DossierPageOptions = CallOptions & {
  language?: (typeof pageLanguages)[number]
  onOtherHolders?: (ids: string[]) => void
}

const bodyOf = ({ from }: MergeFrom) => (typeof from === 'string' ? { from } : { from_id: from.id })

async function* completeLines(lines: AsyncGenerator<unknown>): AsyncGenerator<DossierLine, void, undefined> {
  let isComplete = false
  for await (const line of lines as AsyncGenerator<DossierLine>) {
    isComplete = line.type === 'end'
    yield line
  }
  if (!isComplete) throw new KithConnectionError('The dossier is incomplete: its last line is missing.', {})
}

const dossierPath = (address: EntityAddress) =>
  `/v1/people/${typeof address === 'string' ? segment(address) : `internal/${segment(address.id)}`}/dossier`

const lastTag = '</html>'

async function* completePage(parts: AsyncGenerator<string>): AsyncGenerator<string, void, undefined> {
  let end = ''
  for await (const part of parts) {
    end = (end + part).slice(-lastTag.length - 1)
    yield part
  }
  if (end.trimEnd() !== lastTag) throw new KithConnectionError('The dossier is incomplete: its end is missing.', {})
}
