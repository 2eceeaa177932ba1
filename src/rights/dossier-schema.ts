import type { Static, TProperties } from 'typebox'
import { change } from '../changes/schema.ts'
import { effectiveConsent, recordedAnswer } from '../consents/schema.ts'
import { entityFields } from '../entities/schema.ts'
import { nullable, Type } from '../json-schema.ts'
import { profileFlags, profileTexts } from '../profile-fields.ts'
import { otherHolders } from './erasure/erasure-schema.ts'

const line = <Name extends string, Properties extends TProperties>(
  name: Name,
  description: string,
  properties: Properties,
) => Type.Object({ type: Type.Literal(name, { description }), ...properties })

const time = Type.String({ format: 'date-time' })
const uuid = Type.String({ format: 'uuid' })
const text = nullable(Type.String())
const key = nullable(Type.String())
const number = Type.Integer({ minimum: 1 })

const about = line('about', 'The first line: whose dossier it is, who holds the data, and when it was made.', {
  person: Type.Object({
    id: uuid,
    external_id: text,
    state: Type.Enum(['active', 'placeholder', 'deleted', 'erased'], {
      description:
        'A deleted person has no profile any more, but changes and answers. Only the numbers and times of an erased one stay.',
    }),
    merged_ids: Type.Array(uuid, {
      description: 'The people who were merged into this one. Their data are in the dossier.',
    }),
  }),
  organization: Type.Object({ key: Type.String(), display_name: text, contact_email: text, privacy_url: text }),
  at: Type.String({ format: 'date-time', description: 'The moment that the dossier shows.' }),
  head: Type.Integer({ minimum: 0, description: 'The number of the newest change at that moment.' }),
  log_id: uuid,
  made_by: Type.String({ description: 'The subject of the token.' }),
  request_id: Type.String(),
  other_holders: otherHolders,
})

const profile = line('profile', 'The fields of the person.', {
  id: uuid,
  external_id: text,
  ...(Object.fromEntries(profileTexts.map(name => [name, text])) as Record<(typeof profileTexts)[number], typeof text>),
  ...(Object.fromEntries(profileFlags.map(name => [name, nullable(Type.Boolean())])) as TProperties),
  state: Type.Enum(['active', 'placeholder']),
  version: number,
  created_at: time,
  updated_at: time,
})

const attribute = line('attribute', 'A value of the person that is not a relationship.', {
  key: Type.String(),
  name: Type.String({ description: 'The name of the attribute, or the key of an undeclared value.' }),
  description: text,
  is_declared: Type.Boolean(),
  value: Type.Unknown(),
})

const match_keys = line('match_keys', 'The keys that kith recognizes the person by.', {
  email: nullable(Type.String({ description: 'The email in lower case.' })),
  mobile: nullable(Type.String({ description: 'The phone number in E.164.' })),
  name: nullable(Type.String({ description: 'First name, last name and date of birth.' })),
})

const alias = line('alias', 'A further identifier of the person.', {
  kind: Type.Enum(['external_id', 'email', 'mobile']),
  value: Type.String({
    description: 'The external identifier, the email in lower case, or the phone as an international number (E.164).',
  }),
  created_at: time,
  merge_id: nullable(number),
})

const merge = line('merge', 'A merge that the person took part in.', {
  merge_id: number,
  merged_id: Type.String({ format: 'uuid', description: 'The person who was merged.' }),
  into_id: Type.String({ format: 'uuid', description: 'The person it was merged into.' }),
  at: time,
  sequence: number,
  unmerged_sequence: nullable(number),
  undo: Type.Unknown({ description: 'The moved values, with which kith undoes the merge.' }),
})

const consent = line('consent', 'The effective consent to a purpose on a channel.', {
  ...effectiveConsent.properties,
  consent_type_key: Type.String(),
  consent_type_name: Type.String(),
})

const consent_answer = line('consent_answer', 'An answer that the person gave, with its evidence. Oldest first.', {
  person_id: Type.String({ format: 'uuid', description: 'The person who gave it: this one, or one who was merged.' }),
  consent_type_name: Type.String(),
  ...recordedAnswer.properties,
  receipt: Type.String({ description: 'The path of the signed receipt of this answer.' }),
})

const consent_text = line('text', 'A text that an answer names.', {
  consent_type_id: number,
  consent_type_name: Type.String(),
  version: number,
  language: Type.String(),
  text: Type.String(),
  url: text,
  sha256: Type.String(),
  created_at: time,
})

const link = line('link', 'A relationship, from the person (`out`) or to it (`in`).', {
  direction: Type.Enum(['out', 'in']),
  attribute_key: key,
  attribute_name: text,
  stack_key: nullable(Type.String({ description: 'The stack of a record, null for a person.' })),
  id: nullable(Type.String({ description: 'The `id` or `record_id` of the other entity.' })),
  external_id: text,
})

const record = Type.Object({
  type: Type.Literal('record', { description: 'A record that is linked with the person, as a read shows it.' }),
  record_id: Type.String(),
  external_id: text,
  stack_key: Type.String(),
  attribute_values: entityFields.attribute_values,
  state: Type.Enum(['active', 'placeholder']),
  version: number,
  created_at: time,
  updated_at: time,
})

const personChange = line('change', 'A change of the person, or of one who was merged. Newest first.', {
  ...change.properties,
})

const segment = line(
  'segment',
  'A segment that the person is in, or that it entered or left by a change. By segment.',
  {
    person_id: uuid,
    event: Type.Enum(['member', 'entered', 'left']),
    segment_key: Type.String(),
    segment_name: nullable(Type.String({ description: 'Null if the segment was deleted.' })),
    sequence: nullable(Type.Integer({ minimum: 1, description: 'The change. Null for `member`.' })),
  },
)

const delivery = line(
  'delivery',
  'A change of the person that was sent to a webhook, or is to be sent. Oldest first.',
  {
    webhook_id: number,
    receiver: nullable(
      Type.String({
        description: 'The origin of the URL, such as `https://crm.example`. Null if the webhook was deleted.',
      }),
    ),
    description: text,
    payload: Type.Enum(['full', 'ids'], {
      description: 'Whether the receiver gets the values, or the identifiers only.',
    }),
    sequence: number,
    event: Type.String(),
    status: Type.Enum(['waiting', 'delivered', 'failed']),
    attempts: Type.Integer({ minimum: 0 }),
    created_at: time,
    last_attempt_at: nullable(time),
    response_status: nullable(Type.Integer()),
    response: text,
    error: text,
  },
)

const erasure = line('erasure', 'An erasure of the person.', {
  erasure_id: number,
  id: uuid,
  at: time,
  actor: Type.String(),
  reason: Type.String(),
  records: Type.Enum(['keep', 'linked']),
  completed_at: nullable(time),
})

const end = line('end', 'The last line. A dossier without it is incomplete.', {
  lines: Type.Record(Type.String(), Type.Integer({ minimum: 1 }), {
    description: 'The number of lines before this one, by type.',
  }),
})

/** A line of a dossier. */
export const dossierLine = Type.Union(
  [
    ...[about, profile, attribute, match_keys, alias, merge, consent, consent_answer, consent_text, link, record],
    ...[segment, personChange, delivery, erasure, end],
  ],
  {
    title: 'DossierLine',
    description: 'A line of a dossier: everything that is held about one person.',
    examples: [
      {
        type: 'about',
        person: { id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f', external_id: 'ada', state: 'active', merged_ids: [] },
        organization: {
          key: 'default',
          display_name: 'Northwind Books',
          contact_email: 'privacy@books.example',
          privacy_url: 'https://books.example/privacy',
        },
        at: '2026-01-01T12:00:00.000Z',
        head: 1_204,
        log_id: '6f1a3a52-8c1e-4d0f-9a59-0d2c54c7a1b3',
        made_by: 'privacy-desk',
        request_id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e50',
        other_holders: [],
      },
    ],
  },
)
export type DossierLine = Static<typeof dossierLine>
