import type { Static, TProperties } from 'typebox'
import { accessEntry } from '../accesses/schema.ts'
import { change } from '../changes/schema.ts'
import { effectiveConsent, recordedAnswer } from '../consents/schema.ts'
import { entityFields } from '../entities/schema.ts'
import { pageLanguages } from '../organizations/settings-schema.ts'
import { channels } from '../values/channels.ts'
import { closedObject, count, flag, nullable, number, Type, text, time, uuid } from '../values/json-schema.ts'
import { profileFlags, readTexts } from '../values/profile-fields.ts'
import { otherHolders } from './erasure/erasure-schema.ts'

const line = <Name extends string, Properties extends TProperties>(
  name: Name,
  description: string,
  properties: Properties,
) => Type.Object({ type: Type.Literal(name, { description }), ...properties })

const textOrNull = nullable(text())

/** A line of a dossier. */
export const dossierLine = Type.Union(
  [
    line('about', 'The first line: whose dossier it is, who holds the data, and when it was made.', {
      person: Type.Object({
        id: uuid(),
        external_id: textOrNull,
        state: Type.Enum(['active', 'placeholder', 'deleted', 'erased'], {
          description:
            'A deleted person has no profile any more, but changes and answers. Only the numbers and times of an erased one stay.',
        }),
        merged_ids: Type.Array(uuid(), {
          description: 'The people who were merged into this one. Their data are in the dossier.',
        }),
      }),
      organization: Type.Object({
        key: text(),
        display_name: textOrNull,
        contact_email: textOrNull,
        privacy_url: textOrNull,
      }),
      at: time('The moment that the dossier shows.'),
      head: count('The number of the newest change at that moment.'),
      log_id: uuid(),
      made_by: text('The subject of the token.'),
      request_id: text(),
      other_holders: otherHolders,
    }),
    line('profile', 'The fields of the person.', {
      id: uuid(),
      external_id: textOrNull,
      ...(Object.fromEntries(readTexts.map(name => [name, textOrNull])) as TProperties),
      ...(Object.fromEntries(profileFlags.map(name => [name, nullable(flag())])) as TProperties),
      state: Type.Enum(['active', 'placeholder']),
      version: number(),
      created_at: time(),
      updated_at: time(),
    }),
    line('attribute', 'A value of the person that is not a relationship.', {
      key: text(),
      name: text('The name of the attribute, or the key of an undeclared value.'),
      description: textOrNull,
      is_declared: flag(),
      value: Type.Unknown(),
    }),
    line('match_keys', 'The keys that kith recognizes the person by.', {
      email: nullable(text('The email in lower case.')),
      mobile: nullable(text('The phone number in E.164.')),
      name: nullable(text('First name, last name and date of birth.')),
    }),
    line('alias', 'A further identifier of the person.', {
      kind: Type.Enum(['external_id', 'email', 'mobile']),
      value: text('The external identifier, the email in lower case, or the phone as an international number (E.164).'),
      created_at: time(),
      merge_id: nullable(number()),
    }),
    line('merge', 'A merge that the person took part in.', {
      merge_id: number(),
      merged_id: uuid('The person who was merged.'),
      into_id: uuid('The person it was merged into.'),
      at: time(),
      sequence: number(),
      unmerged_sequence: nullable(number()),
      undo: Type.Unknown({ description: 'The moved values, with which kith undoes the merge.' }),
    }),
    line('consent', 'The effective consent to a purpose on a channel.', {
      ...effectiveConsent.properties,
      consent_type_key: text(),
      consent_type_name: text(),
    }),
    line('consent_answer', 'An answer that the person gave, with its evidence. Oldest first.', {
      person_id: uuid('The person who gave it: this one, or one who was merged.'),
      consent_type_name: text(),
      ...recordedAnswer.properties,
      receipt: text('The path of the signed receipt of this answer.'),
    }),
    line('text', 'A text that an answer names.', {
      consent_type_id: number(),
      consent_type_name: text(),
      version: number(),
      language: text(),
      text: text(),
      url: textOrNull,
      sha256: text(),
      created_at: time(),
    }),
    line('link', 'A relationship, from the person (`out`) or to it (`in`).', {
      direction: Type.Enum(['out', 'in']),
      attribute_key: textOrNull,
      attribute_name: textOrNull,
      stack_key: nullable(text('The stack of a record, null for a person.')),
      id: nullable(text('The `id` or `record_id` of the other entity.')),
      external_id: textOrNull,
    }),
    line('record', 'A record that is linked with the person, as a read shows it.', {
      record_id: text(),
      external_id: textOrNull,
      stack_key: text(),
      attribute_values: entityFields.attribute_values,
      state: Type.Enum(['active', 'placeholder']),
      version: number(),
      created_at: time(),
      updated_at: time(),
    }),
    line('address', 'The events that mail providers reported for an address of the person.', {
      channel: Type.Enum([...channels]),
      address: text(),
      reason: nullable(text('The type of the event that suppresses the address, or did. Null if none ever did.')),
      suppressed_from: nullable(time()),
      suppressed_until: nullable(time('Null without a reason, and after a complaint, which has no end.')),
      events: Type.Unknown({
        description: 'The last event of each type, and the soft bounces since the last delivery.',
      }),
    }),
    line('segment', 'A segment that the person is in, or that it entered or left by a change. By segment.', {
      person_id: uuid(),
      event: Type.Enum(['member', 'entered', 'left']),
      segment_key: text(),
      segment_name: nullable(text('Null if the segment was deleted.')),
      sequence: nullable(number('The change. Null for `member`.')),
    }),
    line('hold', 'A legal hold of the person, also one that has ended.', {
      hold_id: number(),
      reason: text(),
      until: nullable(time()),
      actor: text(),
      created_at: time(),
      released_at: nullable(time('When somebody ended it. Null unless somebody has.')),
    }),
    line('set_aside', 'That the person is not the same as another one who looks like it.', {
      set_aside_id: uuid(),
      person_id: uuid('The person who was set aside: this one, or one who was merged.'),
      actor: text(),
      at: time(),
    }),
    line('retention', 'A retention rule that will erase or delete the person.', {
      rule_id: number(),
      rule_key: text(),
      action: Type.Enum(['erase', 'delete']),
      after_days: number(),
      entered_at: time('Since when the person has been in the segment of the rule.'),
      due_at: time('The rule takes the person no earlier.'),
    }),
    line('job_refusal', 'Why a change of many left the person as it was.', {
      job_id: text(),
      error: text(),
      message: text(),
    }),
    line('change', 'A change of the person, or of one who was merged. Newest first.', change.properties),
    line('delivery', 'A change of the person that was sent to a webhook, or is to be sent. Oldest first.', {
      webhook_id: number(),
      receiver: nullable(
        text('The origin of the URL, such as `https://crm.example`. Null if the webhook was deleted.'),
      ),
      description: textOrNull,
      payload: Type.Enum(['full', 'ids'], {
        description: 'Whether the receiver gets the values, or the identifiers only.',
      }),
      sequence: number(),
      event: text(),
      status: Type.Enum(['waiting', 'delivered', 'failed']),
      attempts: count(),
      created_at: time(),
      last_attempt_at: nullable(time()),
      response_status: nullable(Type.Integer()),
      response: textOrNull,
      error: textOrNull,
    }),
    line('erasure', 'An erasure of the person.', {
      erasure_id: number(),
      id: uuid(),
      at: time(),
      actor: text(),
      reason: text(),
      records: Type.Enum(['keep', 'linked']),
      completed_at: nullable(time()),
    }),
    line(
      'access',
      'A request that showed or wrote the person, from the access log. Newest first.',
      accessEntry.properties,
    ),
    line('end', 'The last line. A dossier without it is incomplete.', {
      lines: Type.Record(text(), number(), {
        description: 'The number of lines before this one, by type.',
      }),
    }),
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

/** The types of all lines but the last, which has their counts. */
export type LineType = Exclude<DossierLine['type'], 'end'>
/** The types of lines that the page has a section for. */
export type SectionType = Exclude<LineType, 'about'>

/** Query of a dossier. */
export const dossierQuery = closedObject({
  language: Type.Optional(
    Type.Enum([...pageLanguages], {
      description:
        'The language of the page. By default that of Accept-Language, else of the person, else of the organization, else English.',
    }),
  ),
})
export type DossierQuery = Static<typeof dossierQuery>
