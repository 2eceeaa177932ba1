import type { Static, TProperties } from 'typebox'
import {
  definitionDescription,
  definitionKey,
  definitionName,
  definitionState,
  examplesOf,
  times,
} from '../organizations/definition-schema.ts'
import { channels } from '../values/channels.ts'
import {
  closedObject,
  count,
  filledText,
  flag,
  ifTrue,
  nullable,
  number,
  optionals,
  pageLimit,
  storedNumber,
  Type,
  text,
  time,
  uuid,
} from '../values/json-schema.ts'
import { suppressionReasons } from './deliverability-state.ts'

const channel = Type.Enum(channels)

/** How an answer was given. */
export const methods = [
  'web_form',
  'double_opt_in',
  'preference_page',
  'unsubscribe_link',
  'gpc',
  'phone',
  'paper',
  'import',
  'api',
  'other',
] as const
export type Method = (typeof methods)[number]

const method = Type.Enum([...methods], { description: 'How the answer was given.' })
const textVersion = storedNumber('The version of the text that the person answered to.')

/** The claims of a client about an answer. The service records its own time, actor and request id beside it. */
export const evidence = Type.Object(
  optionals({
    method,
    source: filledText(2_048, 'Where the answer was given: at most 2 KiB in UTF-8.'),
    ip: Type.String({ format: 'ip-address', description: 'The address that the answer came from.' }),
    user_agent: filledText(2_048, 'The User-Agent of the answer: at most 2 KiB in UTF-8.'),
    text_version: textVersion,
    reference: filledText(255, 'The identifier of the answer in another system.'),
    consent_string: filledText(
      8_192,
      'The consent string of a consent management platform (TCF or GPP), as it was sent: at most 8 KiB in UTF-8.',
    ),
  }),
)
export type Evidence = Static<typeof evidence>

/** When and how an answer was given, and to which text. */
export const evidenceFields = {
  collected_at: Type.Optional(
    Type.String({
      format: 'collection-time',
      description:
        'When the person answered. Without it, the time of the write, or in an import an unknown time. An answer that was collected before the current one ' +
        'goes to the history and changes no state.',
    }),
  ),
  undated: ifTrue(
    'Nobody knows when the person answered, as of an answer of an import without `collected_at`. It lifts no refusal.',
  ),
  ...evidence.properties,
}

/** The effective state of one purpose on one channel, answered or not. */
export const effectiveConsent = Type.Object(
  {
    consent_type_id: number(),
    channel,
    state: flag('Whether the purpose is granted on the channel.'),
    source: Type.Enum(['answer', 'default', 'mandatory'], { description: 'Where the state comes from.' }),
    answered_at: nullable(
      time('When the answer was collected, of an `undated` one when it was stored. Null without an answer.'),
    ),
    undated: ifTrue('An import gave the answer without its time. Every answer with a time replaces it.'),
    pending: ifTrue('The person granted the purpose, and the grant waits for its confirmation.'),
    method: Type.Optional(method),
    text_version: Type.Optional(textVersion),
  },
  {
    title: 'EffectiveConsent',
    description: 'The effective consent to one consent type on one channel, from an answer or the default.',
  },
)

export type EffectiveConsent = Static<typeof effectiveConsent>

/** A consent in force, with the answer of the address. */
const consentInForce = Type.Object(
  {
    ...effectiveConsent.properties,
    address_refused: ifTrue(
      'Somebody refused for the address of the person, so that the person may not be written to although `state` is true.',
    ),
  },
  { title: 'ConsentInForce', description: 'An effective consent, and whether the address of the person refuses it.' },
)
export type ConsentInForce = Static<typeof consentInForce>

/** The response of GET /v1/people/{external_id}/consents. */
export const consentsInForce = Type.Object(
  { items: Type.Array(consentInForce), sequence: count('The number of the newest change when kith read.') },
  {
    title: 'ConsentsInForce',
    description: 'The consents of a person in order of consent type and channel.',
    examples: [
      {
        items: [
          {
            consent_type_id: 1,
            channel: 'email',
            state: true,
            source: 'default',
            answered_at: null,
            address_refused: true,
          },
        ],
        sequence: 1_310,
      },
    ],
  },
)

/** An answer as the consent history shows it. */
export const recordedAnswer = Type.Object(
  {
    sequence: number('The number of the change that the answer is part of.'),
    version: number('The version of the person after that change.'),
    at: time('When kith recorded the answer.'),
    consent_type_id: number(),
    channel,
    state: flag('true grants the purpose on the channel, false refuses it.'),
    previous_state: nullable(flag('The state before, null for the first answer.')),
    superseded: flag('Whether the answer changed no state, because it was collected before the one that stood.'),
    pending: flag('Whether the answer is a grant that waits for its confirmation.'),
    collected_at: nullable(time('When the answer was collected. Null means: at `at`, unless it is `undated`.')),
    method: nullable(method),
    source: nullable(text('Where the answer was given.')),
    ip: nullable(text('The address that the answer came from.')),
    user_agent: nullable(text('The User-Agent of the answer.')),
    text_version: nullable(textVersion),
    text_sha256: nullable(text('The SHA-256 of that text in UTF-8, in hexadecimal.')),
    reference: nullable(text('The identifier of the answer in another system.')),
    consent_string: nullable(text('The consent string of a consent management platform, as it was sent.')),
    actor: text('The subject of the token that wrote.'),
    request_id: text('The request that wrote.'),
    undated: ifTrue('An import gave the answer without its time, so nobody knows when it was collected.'),
    merged_person_id: Type.Optional(
      uuid(
        'The internal identifier of the person who gave the answer and was merged into this one. `sequence` is then the ' +
          'number of its change, and in a history `version` is the one that the merge gave to this person.',
      ),
    ),
  },
  {
    title: 'RecordedAnswer',
    description: 'An answer as the consent history shows it. A member that was not given is null.',
  },
)
export type RecordedAnswer = Static<typeof recordedAnswer>

const exampleAnswer = {
  sequence: 1_204,
  version: 2,
  at: '2026-01-02T09:30:00.000Z',
  consent_type_id: 1,
  channel: 'email',
  state: true,
  previous_state: null,
  superseded: false,
  pending: false,
  collected_at: '2026-01-01T12:00:00.000Z',
  method: 'web_form',
  source: 'https://example.com/newsletter',
  ip: '192.0.2.7',
  user_agent: 'Mozilla/5.0',
  text_version: 1,
  text_sha256: '3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7',
  reference: null,
  consent_string: null,
  actor: 'website',
  request_id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e50',
}

const standingAnswer = nullable(
  Type.Object(
    {
      state: flag(),
      pending: flag('Whether it is a grant that waits for its confirmation.'),
      answered_at: time(),
      person_id: nullable(uuid('The merged person who gave the answer. Null for an own one.')),
    },
    { title: 'StandingAnswer' },
  ),
)

/** An answer in force before and after a write. */
export const answerChange = Type.Object(
  {
    consent_type_id: number(),
    channel: Type.Enum(channels),
    before: standingAnswer,
    after: standingAnswer,
  },
  { title: 'AnswerChange' },
)

/** A page of the consent history of a person. */
export const consentHistoryPage = Type.Object(
  {
    items: Type.Array(recordedAnswer),
    has_more: flag('Whether older answers follow: the last version is the next `before_version`.'),
  },
  {
    title: 'ConsentHistoryPage',
    description: 'A page of the consent history of a person, newest first.',
    examples: [{ items: [exampleAnswer], has_more: false }],
  },
)

export const defaultHistoryLimit = 100

/** The query of a consent history. */
export const consentHistoryQuery = closedObject({
  consent_type_id: Type.Optional(storedNumber('Only answers to this consent type.')),
  // The page at /docs/api would fill in the first value of an enumeration.
  channel: Type.Optional(
    Type.String({ pattern: '^(email|sms)$', description: 'Only answers on this channel: `email` or `sms`.' }),
  ),
  before_version: Type.Optional(storedNumber('Return answers of versions before this one.')),
  limit: pageLimit(1_000, 'The page ends with the write that reaches this number of answers. The default is 100.'),
})
export type ConsentHistoryQuery = Static<typeof consentHistoryQuery>

const reason = <const Rule extends string, Facts extends TProperties>(rule: Rule, description: string, facts: Facts) =>
  Type.Object({ rule: Type.Literal(rule, { description }), ...facts })

/** A rule of a decision, with its facts. */
const contactReason = Type.Union(
  [
    reason('not_found', 'There is no such person. Only in a call for many.', {}),
    reason('deleted', 'The person was deleted.', {
      sequence: number('The number of the change that deleted the person.'),
      at: time(),
    }),
    reason('erased', 'The person was erased.', {
      sequence: number('The number of the change that erased the person.'),
      at: time(),
    }),
    reason('no_address', 'The person has no email address, or no valid mobile number for sms.', {}),
    reason('suppressed', 'Messages to the address bounced, or were complained about. Not in a decision of the past.', {
      event: Type.Enum([...suppressionReasons]),
      at: time('When that happened.'),
      until: nullable(time('When the suppression ends by itself. Null: somebody has to lift it.')),
      provider: nullable(text('The provider that reported it.')),
      reference: nullable(text()),
    }),
    reason('archived', 'The consent type is archived.', {}),
    reason('mandatory', 'The consent type needs no answer.', {}),
    reason(
      'answer',
      'The current answer of the person. It allows if `state` is true and `pending` is false.',
      recordedAnswer.properties,
    ),
    reason('default', 'The person has not answered.', {
      state: flag('The `default_state` of the consent type. true allows.'),
    }),
    reason('address_answer', 'Another answer, given for the same address and perhaps by another person, refuses.', {
      state: flag('Always false.'),
      answered_at: nullable(time('When the answer was collected. Null: nobody knows.')),
      sequence: count(
        'The number of the change that the answer is part of. 0 for one that was given when nobody had the address.',
      ),
      person_id: nullable(
        text('The person who gave it, who may be deleted. Null after an erasure, and if nobody had the address.'),
      ),
    }),
  ],
  { title: 'ContactReason', description: 'A rule that allows or forbids writing to a person, with its facts.' },
)
export type ContactReason = Static<typeof contactReason>

const decision = {
  allowed: flag('Whether the person may be written to.'),
  reasons: Type.Array(contactReason, {
    description: 'If `allowed` is true, the rule that allows it. Otherwise all rules that forbid it, in order.',
  }),
}
const links = {
  one_click_url: Type.Optional(
    text(
      'Only with `links`, if the person may be written to and the purpose is not mandatory: the link that refuses it, for the headers ' +
        '`List-Unsubscribe` and `List-Unsubscribe-Post` (RFC 8058).',
    ),
  ),
  confirm_url: Type.Optional(
    text(
      'Only with `links`, if a grant waits for its confirmation and nothing else forbids a message: the link that confirms it.',
    ),
  ),
}
export type ContactLinks = Static<ReturnType<typeof Type.Object<typeof links>>>
const decisionSequence = count(
  'The number of the newest change when kith decided, or with `at` of the newest until then.',
)

/** Whether one person may be written to. */
export const contactDecision = Type.Object(
  { ...decision, ...links, sequence: decisionSequence },
  {
    title: 'ContactDecision',
    description: 'Whether a person may be written to.',
    examples: [{ allowed: true, reasons: [{ rule: 'answer', ...exampleAnswer }], sequence: 1_310 }],
  },
)

/** The decisions about people, in the order of the request. */
export const contactDecisions = Type.Object(
  { items: Type.Array(Type.Object({ external_id: text(), ...decision, ...links })), sequence: decisionSequence },
  {
    title: 'ContactDecisions',
    description: 'Which people may be written to, in the order of the request.',
    examples: [
      {
        items: [
          { external_id: 'ada', allowed: true, reasons: [{ rule: 'answer', ...exampleAnswer }] },
          {
            external_id: 'grace',
            allowed: false,
            reasons: [{ rule: 'no_address' }, { rule: 'default', state: false }],
          },
        ],
        sequence: 1_310,
      },
    ],
  },
)

const purpose = {
  consent_type_id: storedNumber('The purpose to write for.'),
  channel: Type.Enum(channels, { description: 'A channel that the consent type is configured for.' }),
  links: Type.Optional(
    flag(
      'Make the links that a message to the person carries. The token also needs the scope `people:write`, because everyone who has ' +
        'a link can answer for the person.',
    ),
  ),
}

/** Body of POST /v1/people/{external_id}/contactable. */
export const contactableBody = closedObject(
  {
    ...purpose,
    at: Type.Optional(time('Decide as at this time, RFC 3339. The default is now.')),
  },
  { title: 'ContactableBody', examples: [{ consent_type_id: 1, channel: 'email' }] },
)
export type ContactableBody = Static<typeof contactableBody>

/** Body of POST /v1/people/contactable. */
export const contactableManyBody = closedObject(
  {
    external_ids: Type.Array(Type.String({ format: 'external-id' }), {
      minItems: 1,
      maxItems: 1_000,
      description: 'The people, by external identifier.',
    }),
    ...purpose,
  },
  {
    title: 'ContactableManyBody',
    examples: [{ external_ids: ['your-external-id'], consent_type_id: 1, channel: 'email' }],
  },
)
export type ContactableManyBody = Static<typeof contactableManyBody>

const configuredChannels = Type.Array(
  closedObject(
    {
      channel,
      is_default: Type.Optional(flag("Whether this is the channel's default purpose.")),
      double_opt_in: Type.Optional(flag('Whether a grant is `pending` until it is confirmed. False by default.')),
    },
    { title: 'ConsentTypeChannelBody' },
  ),
  { minItems: 1, maxItems: 2, description: 'The channels that the purpose applies to, without duplicates.' },
)

/** Body of POST /v1/schema/consent-types. */
export const newConsentType = closedObject(
  {
    key: definitionKey,
    channels: configuredChannels,
    name: Type.Optional(definitionName),
    description: Type.Optional(definitionDescription),
    mandatory: Type.Optional(flag('A mandatory purpose is always granted and cannot be answered.')),
    default_state: Type.Optional(flag('The state of a person who has not answered.')),
  },
  {
    title: 'ConsentTypeBody',
    examples: [{ key: 'your_key', name: 'Your purpose', channels: [{ channel: 'email', is_default: false }] }],
  },
)
export type ConsentTypeBody = Static<typeof newConsentType>

/** Body of PATCH /v1/schema/consent-types/{id}. The key never changes. A type can be archived but not deleted. */
export const consentTypePatch = closedObject(
  {
    name: Type.Optional(definitionName),
    description: Type.Optional(definitionDescription),
    channels: Type.Optional(configuredChannels),
    mandatory: Type.Optional(flag()),
    default_state: Type.Optional(flag()),
    state: Type.Optional(definitionState),
  },
  { title: 'ConsentTypePatch', examples: [{}] },
)
export type ConsentTypePatch = Static<typeof consentTypePatch>

/** A consent type as a read shows it. */
export const consent_type = Type.Object(
  {
    id: number(),
    key: text(),
    name: text(),
    description: definitionDescription,
    state: definitionState,
    mandatory: flag(),
    default_state: flag(),
    channels: Type.Array(
      Type.Object({ channel, is_default: flag(), double_opt_in: flag() }, { title: 'ConsentTypeChannel' }),
    ),
    text_versions: count('The number of its texts, whose versions count from 1.'),
    ...times,
  },
  {
    title: 'ConsentType',
    description: 'A consent type as reads return it.',
    examples: [
      {
        id: 2,
        key: 'surveys',
        name: 'Surveys',
        description: null,
        state: 'active',
        mandatory: false,
        default_state: false,
        channels: [{ channel: 'email', is_default: false, double_opt_in: false }],
        text_versions: 1,
        created_at: '2026-01-01T12:00:00.000Z',
        updated_at: '2026-01-01T12:00:00.000Z',
      },
    ],
  },
)

const language = Type.String({ format: 'language', description: 'The language of the text, such as `en` or `pt-BR`.' })
const url = Type.String({
  maxLength: 2_048,
  pattern: '^[Hh][Tt][Tt][Pp][Ss]?://',
  description: 'Where the text was shown: an http or https URL.',
})

/** Body of POST /v1/schema/consent-types/{id}/texts. */
export const newConsentText = closedObject(
  {
    language,
    text: filledText(65_536, 'The text: at most 64 KiB in UTF-8.'),
    url: Type.Optional(url),
  },
  { title: 'ConsentTextBody', examples: [{ language: 'en', text: 'your text' }] },
)
export type ConsentTextBody = Static<typeof newConsentText>

/** A text that people answer to. It never changes. */
export const consentText = Type.Object(
  {
    version: number('Counts from 1 for each consent type.'),
    language,
    text: text(),
    url: nullable(text()),
    sha256: Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'The SHA-256 of the text in UTF-8, in hexadecimal.',
    }),
    created_at: time(),
  },
  {
    title: 'ConsentText',
    description: 'A text that people answer to. It never changes.',
    examples: [
      {
        version: 1,
        language: 'en',
        text: 'Yes, send me the newsletter. I can unsubscribe at any time.',
        url: 'https://shop.example/newsletter',
        sha256: '2680b94ced3bdb874d0a0c6dd2637696432c79ee4b45b8b1e50cfbf0569a6b45',
        created_at: '2026-01-01T12:00:00.000Z',
      },
    ],
  },
)
export type ConsentText = Static<typeof consentText>

/** The query of GET /v1/schema/consent-types/{id}/texts. */
export const textsQuery = closedObject({
  after: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 2_147_483_647, description: 'Return versions after this one.' }),
  ),
  limit: pageLimit(100, 'The most items of a page. The default is 20.'),
})
export type TextsQuery = Static<typeof textsQuery>

/** The response of GET /v1/schema/consent-types/{id}/texts. */
export const textPage = Type.Object(
  {
    items: Type.Array(consentText),
    has_more: flag('Whether later versions follow: the last version is the next `after`.'),
  },
  { title: 'ConsentTextPage', examples: [{ items: examplesOf(consentText), has_more: false }] },
)
