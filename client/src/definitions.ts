import { EndpointGroup } from './endpoint-group.ts'
import { Listing, listingOfAll, numberOf, type PageOptions, pageOf } from './listing.ts'
import type { Call, CallOptions, WriteOptions, Written } from './options.ts'
import { queryOf } from './query.ts'
import type { Endpoint, Transport } from './transport.ts'
import type { RuleName } from './vocabulary.ts'
import type {
  Attribute,
  AttributeBody,
  AttributePatch,
  ConsentText,
  ConsentTextBody,
  ConsentType,
  ConsentTypeBody,
  ConsentTypePatch,
  DeclareBody,
  Declared,
  DefinitionDryRun,
  Definitions,
  ObservedKeys,
  ObservedLine,
  Settings,
  SettingsPatch,
  Stack,
  StackBody,
  StackPatch,
  Violation,
} from './wire.ts'

/** The result of a write of a definition. */
type Defined<U extends WriteOptions, Definition> = Written<U, Definition, DefinitionDryRun>

type DefinitionPath = '/v1/schema/stacks' | '/v1/schema/attributes' | '/v1/schema/consent-types'

/** The endpoints of one kind of definition. `Key` is the type of its identifier. */
export class DefinitionEndpoints<Definition, New, Patch, Key extends string | number> extends EndpointGroup {
  readonly #path: DefinitionPath
  readonly #key: 'stack_key' | 'id'

  constructor(transport: Transport, path: DefinitionPath) {
    super(transport)
    this.#path = path
    this.#key = path === '/v1/schema/stacks' ? 'stack_key' : 'id'
  }

  /**
   * Lists all definitions of the kind, archived ones included.
   *
   * ```ts
   * const stacks = await client.schema.stacks.list().all()
   * console.log(stacks.map(stack => stack.key).join()) // orders,visits
   * ```
   */
  list(options?: CallOptions): Listing<Definition> {
    return listingOfAll(() => this.transport.sendAs<{ items: Definition[] }>(`GET ${this.#path}`, {}, options))
  }

  /**
   * Reads one definition: a stack by its key, an attribute or a consent type by its id.
   *
   * ```ts
   * const marketing = await client.schema.consentTypes.get(1)
   * console.log(marketing.key, marketing.state) // marketing active
   * ```
   */
  get(key: Key, options?: CallOptions): Call<Definition> {
    return this.transport.sendAs(this.#at('GET'), { params: { [this.#key]: key } }, options)
  }

  /**
   * Creates a definition.
   *
   * ```ts
   * await client.schema.stacks.create({ key: 'products', kind: 'item' })
   * const bought = await client.schema.attributes.create({
   *   key: 'bought',
   *   owner: 'people',
   *   type: 'stack',
   *   target_stack: 'products',
   *   cardinality: 'many',
   * })
   * console.log(bought.state) // active
   * ```
   */
  create<U extends WriteOptions = Record<never, never>>(body: New, options?: U): Call<Defined<U, Definition>> {
    return this.transport.sendAs(`POST ${this.#path}`, { body }, options)
  }

  /**
   * Changes the fields that the body names. Attributes and consent types can be archived but not deleted.
   *
   * ```ts
   * const surveys = await client.schema.consentTypes.create({ key: 'surveys', channels: [{ channel: 'sms' }] })
   * const archived = await client.schema.consentTypes.patch(surveys.id, { state: 'archived' })
   * console.log(archived.state) // archived
   * ```
   *
   * With `dryRun`, it returns the changes that the log would get, and changes nothing:
   *
   * ```ts
   * const { changes } = await client.schema.stacks.patch('orders', { name: 'Orders' }, { dryRun: true })
   * console.log(changes[0]?.after) // { name: 'Orders' }
   * ```
   */
  patch<U extends WriteOptions = Record<never, never>>(
    key: Key,
    body: Patch,
    options?: U,
  ): Call<Defined<U, Definition>> {
    return this.transport.sendAs(this.#at('PATCH'), { params: { [this.#key]: key }, body }, options)
  }

  /** The endpoint of one definition. */
  #at<M extends 'GET' | 'PATCH'>(method: M) {
    return `${method} ${this.#path}/{${this.#key}}` as Extract<
      Endpoint,
      `${M} ${DefinitionPath}/{${'stack_key' | 'id'}}`
    >
  }
}

/** The endpoints of consent types and of their texts. */
class ConsentTypeEndpoints extends DefinitionEndpoints<ConsentType, ConsentTypeBody, ConsentTypePatch, number> {
  constructor(transport: Transport) {
    super(transport, '/v1/schema/consent-types')
  }

  /**
   * Adds a text to a consent type. The text gets the next version and never changes. Answers name its version in
   * `text_version`.
   *
   * ```ts
   * const text = await client.schema.consentTypes.addText(1, { language: 'en', text: 'Send me the newsletter.' })
   * console.log(text.version, text.sha256.length) // 1 64
   * ```
   */
  addText<U extends WriteOptions = Record<never, never>>(
    id: number,
    body: ConsentTextBody,
    options?: U,
  ): Call<Defined<U, ConsentText>> {
    return this.send('POST /v1/schema/consent-types/{id}/texts', { params: { id }, body }, options)
  }

  /**
   * Lists the texts of a consent type, in order of version.
   *
   * ```ts
   * await client.schema.consentTypes.addText(1, { language: 'en', text: 'Send me the newsletter.' })
   * const page = await client.schema.consentTypes.texts(1).page()
   * console.log(page.items.map(text => text.language).join(), page.has_more) // en false
   * ```
   */
  texts(id: number, { size, after, ...options }: CallOptions & PageOptions = {}): Listing<ConsentText> {
    const read = (after?: string) => {
      const query = { after: numberOf(after), limit: size }
      return this.send('GET /v1/schema/consent-types/{id}/texts', { params: { id }, query }, options)
    }
    return new Listing(after => pageOf(read(after), ({ version }) => version), after)
  }
}

/** A rule that values violate: the type of the attribute, or one of its rules. */
export type AttributeRule = Violation['rules'][number]

type Operand<Value> = Value extends (infer Element)[] ? readonly Element[] : Value

/** Proposed rules of an attribute. */
export type ProposedRules = { [Rule in Exclude<RuleName, 'unique'>]?: Operand<NonNullable<Attribute[Rule]>> }

/**
 * The options of violations. `rule` selects the violations of one rule, `proposed` checks these rules in place of the
 * attribute's own. A page has at most `size` entities, 50 by default, after `after_id`.
 */
export type ViolationOptions = PageOptions & {
  rule?: AttributeRule
  proposed?: ProposedRules
} & CallOptions

/** The endpoints of attributes. */
export class AttributeEndpoints extends DefinitionEndpoints<Attribute, AttributeBody, AttributePatch, number> {
  constructor(transport: Transport) {
    super(transport, '/v1/schema/attributes')
  }

  /**
   * Declares up to 5,000 attributes, all or none. The items have the order of the bodies.
   *
   * ```ts
   * const { items } = await client.schema.attributes.batch([
   *   { key: 'color', owner: 'orders', type: 'text' },
   *   { key: 'size', owner: 'orders', type: 'number', indexed: true },
   * ])
   * console.log(items.map(attribute => attribute.key).join()) // color,size
   * ```
   */
  batch<U extends WriteOptions = Record<never, never>>(
    items: readonly AttributeBody[],
    options?: U,
  ): Call<Defined<U, { items: Attribute[] }>> {
    return this.transport.sendAs('POST /v1/schema/attributes/batch', { body: { items } }, options)
  }

  /**
   * Lists the entities whose stored values break the rules of an attribute, because they are older than the rule. While
   * `has_more` is true, a page may have fewer entities than its size, even none.
   *
   * ```ts
   * const total = (await client.schema.attributes.list().all()).find(({ key }) => key === 'total')!
   * await client.schema.attributes.patch(total.id, { minimum: 20 } as object)
   * for await (const { external_id, rules } of client.schema.attributes.violations(total.id))
   *   console.log(external_id, rules.join()) // o-1 minimum
   * ```
   *
   * With `proposed`, it lists the violations of rules that the attribute does not have yet:
   *
   * ```ts
   * const total = (await client.schema.attributes.list().all()).find(({ key }) => key === 'total')!
   * const { items } = await client.schema.attributes.violations(total.id, { proposed: { minimum: 20 } }).page()
   * console.log(items.map(({ external_id }) => external_id).join()) // o-1
   * ```
   */
  violations(
    id: number,
    { rule, proposed, size, after: first, ...options }: ViolationOptions = {},
  ): Listing<Violation> {
    const read = async (after_id: string | undefined) => {
      const query = { rule, ...proposed, enum: proposed?.enum?.map(String), size, after_id }
      const { next_after_id: next, ...page } = await this.send(
        'GET /v1/schema/attributes/{id}/violations',
        { params: { id }, query },
        options,
      )
      return { ...page, next }
    }
    return new Listing(read, first)
  }
}

/** The definitions of an organization: stacks, attributes and consent types. */
export class SchemaEndpoints extends EndpointGroup {
  readonly stacks = new DefinitionEndpoints<Stack, StackBody, StackPatch, string>(this.transport, '/v1/schema/stacks')
  readonly attributes = new AttributeEndpoints(this.transport)
  readonly consentTypes = new ConsentTypeEndpoints(this.transport)

  /**
   * Reads all definitions at once.
   *
   * ```ts
   * const { stacks, attributes, consent_types } = await client.schema.get()
   * console.log(stacks.length, attributes.length, consent_types.length) // 2 4 1
   * ```
   */
  get(options?: CallOptions): Call<Definitions> {
    return this.send('GET /v1/schema', {}, options)
  }

  /**
   * Counts the stored values of the newest 10,000 entities under undeclared keys. `truncated` is true if the owner has
   * more entities, or more than 10,000 keys.
   *
   * ```ts
   * const { items, truncated } = await client.schema.observed('people')
   * console.log(items.length, truncated) // 0 false
   * ```
   */
  observed(owner: string, options?: CallOptions): Call<ObservedKeys> {
    return this.send('GET /v1/schema/observed', { query: { owner } }, options)
  }

  /**
   * Counts the stored values of all entities under undeclared keys, and streams the keys. The last line has no `key`
   * but the totals.
   *
   * ```ts
   * for await (const line of client.schema.observedInAll('people'))
   *   console.log('key' in line ? line.key : line.truncated) // false
   * ```
   */
  observedInAll(owner: string, options?: CallOptions): AsyncIterable<ObservedLine> {
    return this.transport.lines({ method: 'GET', path: `/v1/schema/observed${queryOf({ owner })}`, options })
  }

  /**
   * Declares an attribute, and counts the stored values that fit it. With `dryRun`, it only counts.
   *
   * ```ts
   * await client.people.patch('ada', { attribute_values: { age: 36 } })
   * const preview = await client.schema.declare({ owner: 'people', key: 'age', type: 'number' }, { dryRun: true })
   * console.log(preview.attribute, preview.fits, preview.misfits) // null 1 0
   * ```
   */
  declare(body: Omit<DeclareBody, 'dry_run'>, options?: Pick<WriteOptions, 'dryRun'> & CallOptions): Call<Declared> {
    return this.send('PUT /v1/schema/observed/declare', { body }, options)
  }

  /**
   * Reads the settings of the pages for people: name, accent color, language, privacy notice, contact and texts.
   *
   * ```ts
   * const { display_name, updated_at } = await client.schema.settings()
   * console.log(display_name, updated_at) // null null
   * ```
   */
  settings(options?: CallOptions): Call<Settings> {
    return this.send('GET /v1/schema/settings', {}, options)
  }

  /**
   * Changes the settings that the body names. Null clears a setting.
   *
   * ```ts
   * const settings = await client.schema.patchSettings({ display_name: 'Northwind Books', accent_color: '#0b6e4f' })
   * console.log(settings.display_name, settings.language) // Northwind Books null
   * ```
   */
  patchSettings<U extends WriteOptions = Record<never, never>>(
    body: SettingsPatch,
    options?: U,
  ): Call<Defined<U, Settings>> {
    return this.send('PATCH /v1/schema/settings', { body }, options)
  }
}
