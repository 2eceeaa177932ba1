import { segment } from './json.ts'
import type { CallOptions, WriteOptions } from './options.ts'
import { queryOf } from './query.ts'
import type { Send } from './transport.ts'
import type {
  Attribute,
  AttributePatch,
  ConsentText,
  ConsentTextPage,
  ConsentType,
  ConsentTypePatch,
  Definitions,
  NewAttribute,
  NewConsentText,
  NewConsentType,
  NewStack,
  Stack,
  StackPatch,
} from './wire.ts'

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
  async create(body: New, options?: WriteOptions): Promise<Definition> {
    const request = { method: 'POST', path: this.#path, body, options, repeatable: false, writes: true } as const
    return (await this.#send(request)) as Definition
  }

  /**
   * Changes the fields that the body names. Attributes and consent types can be archived but not deleted.
   *
   * ```ts
   * const surveys = await client.schema.consentTypes.create({ key: 'surveys', channels: [{ channel: 'sms' }] })
   * const archived = await client.schema.consentTypes.patch(surveys.id, { state: 'archived' })
   * console.log(archived.state) // archived
   * ```
   */
  async patch(key: Key, body: Patch, options?: WriteOptions): Promise<Definition> {
    const path = `${this.#path}/${segment(String(key))}`
    // Repeating the request is safe: the same values are no change.
    return (await this.#send({ method: 'PATCH', path, body, options, repeatable: true, writes: true })) as Definition
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
  async addText(id: number, body: NewConsentText, options?: WriteOptions): Promise<ConsentText> {
    const request = { method: 'POST', path: textsPath(id), body, options, repeatable: false, writes: true } as const
    return (await this.#send(request)) as ConsentText
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

/** The definitions of an organization: stacks, attributes and consent types. */
export class SchemaEndpoints {
  readonly #send: Send
  readonly stacks: DefinitionEndpoints<Stack, NewStack, StackPatch, string>
  readonly attributes: DefinitionEndpoints<Attribute, NewAttribute, AttributePatch, number>
  readonly consentTypes: ConsentTypeEndpoints

  constructor(send: Send) {
    this.#send = send
    this.stacks = new DefinitionEndpoints(send, '/v1/schema/stacks')
    this.attributes = new DefinitionEndpoints(send, '/v1/schema/attributes')
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
}
