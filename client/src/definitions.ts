import { segment } from './json.ts'
import { Listing, type PageOptions, type Position } from './listing.ts'
import type { CallOptions, WriteOptions, Written } from './options.ts'
import { queryOf } from './query.ts'
import type { Send } from './transport.ts'
import type {
  Attribute,
  AttributePatch,
  ConsentText,
  ConsentTextPage,
  ConsentType,
  ConsentTypePatch,
  DeclareBody,
  Declared,
  DefinitionDryRun,
  Definitions,
  NewAttribute,
  NewConsentText,
  NewConsentType,
  NewStack,
  ObservedKeys,
  Settings,
  SettingsPatch,
  Stack,
  StackPatch,
  Violation,
  ViolationPage,
} from './wire.ts'

/** The result of a write of a definition. */
type Defined<U extends WriteOptions, Definition> = Written<U, Definition, DefinitionDryRun>

/** The endpoints of one kind of definition. `Key` is the type of its identifier. */
export class DefinitionEndpoints<Definition, New, Patch, Key extends string | number> {
  readonly #send: Send
  readonly #path: string

  constructor(send: Send, path: string) {
    this.#send = send
    this.#path = path
  }

  /**
   * Lists all definitions of the kind, archived ones included.
   *
   * ```ts
   * const stacks = await client.schema.stacks.list()
   * console.log(stacks.map(stack => stack.key).join()) // orders,visits
   * ```
   */
  async list(options?: CallOptions): Promise<Definition[]> {
    const request = { method: 'GET', path: this.#path, options, repeatable: true, writes: false } as const
    return ((await this.#send(request)) as { items: Definition[] }).items
  }

  /**
   * Reads one definition: a stack by its key, an attribute or a consent type by its id.
   *
   * ```ts
   * const marketing = await client.schema.consentTypes.get(1)
   * console.log(marketing.key, marketing.state) // marketing active
   * ```
   */
  async get(key: Key, options?: CallOptions): Promise<Definition> {
    const path = `${this.#path}/${segment(String(key))}`
    return (await this.#send({ method: 'GET', path, options, repeatable: true, writes: false })) as Definition
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
  async create<U extends WriteOptions = Record<never, never>>(body: New, options?: U): Promise<Defined<U, Definition>> {
    const request = { method: 'POST', path: this.#path, body, options, repeatable: false, writes: true } as const
    return (await this.#send(request)) as Defined<U, Definition>
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
   * With `dryRun`, it tells which changes the log would get, and changes nothing:
   *
   * ```ts
   * const { changes } = await client.schema.stacks.patch('orders', { name: 'Orders' }, { dryRun: true })
   * console.log(changes[0]?.after) // { name: 'Orders' }
   * ```
   */
  async patch<U extends WriteOptions = Record<never, never>>(
    key: Key,
    body: Patch,
    options?: U,
  ): Promise<Defined<U, Definition>> {
    const path = `${this.#path}/${segment(String(key))}`
    // Repeating the request is safe: the same values are no change.
    const request = { method: 'PATCH', path, body, options, repeatable: true, writes: true } as const
    return (await this.#send(request)) as Defined<U, Definition>
  }
}

const consentTypesPath = '/v1/schema/consent-types'
const textsPath = (id: number) => `${consentTypesPath}/${segment(String(id))}/texts`

/** The endpoints of consent types and of their texts. */
export class ConsentTypeEndpoints extends DefinitionEndpoints<ConsentType, NewConsentType, ConsentTypePatch, number> {
  readonly #send: Send

  constructor(send: Send) {
    super(send, consentTypesPath)
    this.#send = send
  }

  /**
   * Adds a text to a consent type. It gets the next version and never changes. Answers name it in `text_version`.
   *
   * ```ts
   * const text = await client.schema.consentTypes.addText(1, { language: 'en', text: 'Send me the newsletter.' })
   * console.log(text.version, text.sha256.length) // 1 64
   * ```
   */
  async addText<U extends WriteOptions = Record<never, never>>(
    id: number,
    body: NewConsentText,
    options?: U,
  ): Promise<Defined<U, ConsentText>> {
    const request = { method: 'POST', path: textsPath(id), body, options, repeatable: false, writes: true } as const
    return (await this.#send(request)) as Defined<U, ConsentText>
  }

  /**
   * Reads a page of the texts of a consent type, in order of version. The next page follows the last version.
   *
   * ```ts
   * await client.schema.consentTypes.addText(1, { language: 'en', text: 'Send me the newsletter.' })
   * const page = await client.schema.consentTypes.texts(1, { after: 0, limit: 100 })
   * console.log(page.items.map(text => text.language).join(), page.has_more) // en false
   * ```
   */
  async texts(
    id: number,
    { after, limit, ...options }: CallOptions & { after?: number; limit?: number } = {},
  ): Promise<ConsentTextPage> {
    const path = textsPath(id) + queryOf({ after, limit })
    return (await this.#send({ method: 'GET', path, options, repeatable: true, writes: false })) as ConsentTextPage
  }
}

const attributesPath = '/v1/schema/attributes'
const textOf = (flag: boolean | undefined) => (flag === undefined ? undefined : String(flag))

/** A rule that values violate: the type of the attribute, or one of its rules. */
export type AttributeRule = Violation['rules'][number]

/** Rules that an attribute may get. */
export type ProposedRules = {
  required?: boolean
  enum?: readonly (string | number | boolean)[]
  pattern?: string
  minimum?: number | string
  maximum?: number | string
}

/**
 * The options of violations: only those of one `rule`, or of the rules in `proposed` in place of those of the attribute. A page has at
 * most `size` entities, 50 by default, after `after_id`.
 */
export type ViolationOptions = Pick<PageOptions, 'size' | 'after_id'> & {
  rule?: AttributeRule
  proposed?: ProposedRules
} & CallOptions

/** The endpoints of attributes. */
export class AttributeEndpoints extends DefinitionEndpoints<Attribute, NewAttribute, AttributePatch, number> {
  readonly #send: Send

  constructor(send: Send) {
    super(send, attributesPath)
    this.#send = send
  }

  /**
   * Lists the entities whose stored values break the rules of an attribute: values that were stored before the rule. A page may have
   * fewer entities than its size, even none, while `has_more` is true.
   *
   * ```ts
   * const total = (await client.schema.attributes.list()).find(({ key }) => key === 'total')!
   * await client.schema.attributes.patch(total.id, { minimum: 20 } as object)
   * for await (const { external_id, rules } of client.schema.attributes.violations(total.id))
   *   console.log(external_id, rules.join()) // o-1 minimum
   * ```
   *
   * With `proposed`, it lists those that would stand against rules that the attribute does not have yet:
   *
   * ```ts
   * const total = (await client.schema.attributes.list()).find(({ key }) => key === 'total')!
   * const { items } = await client.schema.attributes.violations(total.id, { proposed: { minimum: 20 } }).page()
   * console.log(items.map(({ external_id }) => external_id).join()) // o-1
   * ```
   */
  violations(
    id: number,
    { rule, proposed, size, after_id: first, ...options }: ViolationOptions = {},
  ): Listing<Violation> {
    const { required, enum: values, ...others } = proposed ?? {}
    const rules = { required: textOf(required), enum: values?.map(String), ...others }
    const read = async ({ after_id }: Position) => {
      const path = `${attributesPath}/${segment(String(id))}/violations${queryOf({ rule, ...rules, size, after_id })}`
      const request = { method: 'GET', path, options, repeatable: true, writes: false } as const
      const { next_after_id, ...page } = (await this.#send(request)) as ViolationPage
      return { ...page, after_id: next_after_id }
    }
    return new Listing(read, () => undefined, { after_id: first })
  }
}

/** The definitions of an organization: stacks, attributes and consent types. */
export class SchemaEndpoints {
  readonly #send: Send
  readonly stacks: DefinitionEndpoints<Stack, NewStack, StackPatch, string>
  readonly attributes: AttributeEndpoints
  readonly consentTypes: ConsentTypeEndpoints

  constructor(send: Send) {
    this.#send = send
    this.stacks = new DefinitionEndpoints(send, '/v1/schema/stacks')
    this.attributes = new AttributeEndpoints(send)
    this.consentTypes = new ConsentTypeEndpoints(send)
  }

  /**
   * Reads all definitions at once.
   *
   * ```ts
   * const { stacks, attributes, consent_types } = await client.schema.get()
   * console.log(stacks.length, attributes.length, consent_types.length) // 2 4 1
   * ```
   */
  async get(options?: CallOptions): Promise<Definitions> {
    const request = { method: 'GET', path: '/v1/schema', options, repeatable: true, writes: false } as const
    return (await this.#send(request)) as Definitions
  }

  /**
   * Lists the keys of values that were written without a declaration, with the types of the values, and when they were written first and
   * last. `sequence` is the number of the change up to which kith has looked.
   *
   * ```ts
   * const { items, truncated } = await client.schema.observed('people')
   * console.log(items.length, truncated) // 0 false
   * ```
   */
  async observed(owner: string, options?: CallOptions): Promise<ObservedKeys> {
    const path = `/v1/schema/observed${queryOf({ owner })}`
    return (await this.#send({ method: 'GET', path, options, repeatable: true, writes: false })) as ObservedKeys
  }

  /**
   * Declares an attribute, and tells how many of the stored values fit it. `dryRun` only tells.
   *
   * ```ts
   * await client.people.patch('ada', { attribute_values: { age: 36 } })
   * const preview = await client.schema.declare({ owner: 'people', key: 'age', type: 'number' }, { dryRun: true })
   * console.log(preview.attribute, preview.fits, preview.misfits) // null 1 0
   * ```
   */
  async declare(
    body: Omit<DeclareBody, 'dry_run'>,
    { dryRun = false, ...options }: Pick<WriteOptions, 'dryRun'> & CallOptions = {},
  ): Promise<Declared> {
    const request = {
      method: 'PUT',
      path: '/v1/schema/observed/declare',
      body: { ...body, ...(dryRun && { dry_run: true }) },
      options,
      repeatable: dryRun,
      writes: !dryRun,
    } as const
    return (await this.#send(request)) as Declared
  }

  /**
   * Reads the settings of the pages for people: name, accent color, language, privacy notice, contact and texts.
   *
   * ```ts
   * const { display_name, updated_at } = await client.schema.settings()
   * console.log(display_name, updated_at) // null null
   * ```
   */
  async settings(options?: CallOptions): Promise<Settings> {
    const request = { method: 'GET', path: '/v1/schema/settings', options, repeatable: true, writes: false } as const
    return (await this.#send(request)) as Settings
  }

  /**
   * Changes the settings that the body names. A null clears one.
   *
   * ```ts
   * const settings = await client.schema.patchSettings({ display_name: 'Northwind Books', accent_color: '#0b6e4f' })
   * console.log(settings.display_name, settings.language) // Northwind Books null
   * ```
   */
  async patchSettings<U extends WriteOptions = Record<never, never>>(
    body: SettingsPatch,
    options?: U,
  ): Promise<Defined<U, Settings>> {
    // Repeating the request is safe: the same values are no change.
    const request = {
      method: 'PATCH',
      path: '/v1/schema/settings',
      body,
      options,
      repeatable: true,
      writes: true,
    } as const
    return (await this.#send(request)) as Defined<U, Settings>
  }
}
