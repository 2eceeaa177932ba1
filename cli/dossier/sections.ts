import type { Change, DossierLine } from '../../client/index.ts'
import { type Html, html } from '../../src/consent-pages/html.ts'
import { cellOf, labelOf, printValue, rowOf, rowsOf, timeOf } from './values.ts'

type LineType = DossierLine['type']
type LineOf<Type extends LineType> = Extract<DossierLine, { type: Type }>

/** The HTML before and after the lines of a section. */
export type Part = { begin: string; end: string }

type Section = {
  id: string
  title: string
  /** The text below the title, and the text of a section without lines. */
  about: string
  none: string
  types: readonly LineType[]
  part: Part
  print(line: DossierLine): Html
}

const list: Part = { begin: '<dl>', end: '</dl>' }
const cards: Part = { begin: '', end: '' }
const table = (...columns: string[]): Part => ({
  begin: `<table><thead><tr>${columns.map(column => `<th scope="col">${column}</th>`).join('')}</tr></thead><tbody>`,
  end: '</tbody></table>',
})

/** Defines a section whose lines have one type. */
function section<Type extends LineType>(
  type: Type,
  options: Omit<Section, 'types' | 'print'> & { print(line: LineOf<Type>): Html },
): Section {
  return { ...options, types: [type], print: line => options.print(line as LineOf<Type>) }
}

function decisionOf(state: boolean, pending: boolean | undefined, negative: string): Html {
  if (pending) return html`<span class="no">not confirmed yet</span>`
  return state ? html`<span class="yes">allowed</span>` : html`<span class="no">${negative}</span>`
}

const channels: Record<string, string> = { email: 'email', sms: 'text message' }
const sources: Record<string, string> = {
  answer: 'your answer',
  default: 'you have not answered',
  mandatory: 'needs no answer',
}

const operations: Record<Change['operation'], string> = {
  create: 'Stored for the first time',
  update: 'Changed',
  delete: 'Deleted',
  restore: 'Restored',
  merge: 'Merged into another profile',
  unmerge: 'Separated again',
  erase: 'Erased',
  retention_due: 'Its time will be over soon',
}

/** The name of another entity: its external identifier, with the stack of a record. */
const nameOf = ({ external_id, id, stack_key }: LineOf<'link'>) =>
  `${stack_key === null ? 'person' : stack_key} ${external_id ?? id ?? ''}`

/** The sections of the page, in the order of the lines. */
export const sections: readonly Section[] = [
  section('profile', {
    id: 'profile',
    title: 'Profile',
    about: 'Your name, how to reach you, and when your profile was stored.',
    none: 'There is no profile.',
    part: list,
    print: ({ type: _, ...fields }) =>
      html`${Object.entries(fields).map(([name, value]) => rowOf(labelOf(name), value))}`,
  }),
  section('attribute', {
    id: 'details',
    title: 'Further details',
    about: 'What else is stored about you.',
    none: 'No further details are stored.',
    part: list,
    print: ({ name, key, description, value }) =>
      html`<div><dt dir="auto">${name === key ? labelOf(name) : name}${description && html`<br><small>${description}</small>`}</dt><dd>${printValue(value)}</dd></div>`,
  }),
  section('match_keys', {
    id: 'recognition',
    title: 'How you are recognized',
    about: 'By these values, the system recognizes that two profiles may be of the same person.',
    none: 'Nothing is stored to recognize you by.',
    part: list,
    print: ({ type: _, ...keys }) =>
      html`${rowsOf(Object.fromEntries(Object.entries(keys).map(([name, key]) => [name, key?.replaceAll('\n', ' ')])))}`,
  }),
  section('alias', {
    id: 'aliases',
    title: 'Further identifiers',
    about: 'Other identifiers that lead to your profile, also emails and phones.',
    none: 'You have no further identifiers.',
    part: table('Identifier', 'Since', 'From'),
    print: ({ value, created_at, merge_id }) =>
      html`<tr>${cellOf('Identifier', value)}${cellOf('Since', created_at)}${cellOf('From', merge_id === null ? 'a later import or request' : `merge ${merge_id}`)}</tr>`,
  }),
  section('consent', {
    id: 'consents',
    title: 'What you allow',
    about: 'Whether you may be written to, for each purpose and channel.',
    none: 'There is nothing that you could allow or refuse.',
    part: table('Purpose', 'Channel', 'Now', 'Because of'),
    print: ({ consent_type_name, channel, state, pending, source, answered_at }) =>
      html`<tr>${cellOf('Purpose', consent_type_name)}${cellOf('Channel', channels[channel])}<td data-label="Now">${decisionOf(state, pending, 'not allowed')}</td><td data-label="Because of">${sources[source]}${answered_at && html`, ${timeOf(answered_at)}`}</td></tr>`,
  }),
  section('consent_answer', {
    id: 'answers',
    title: 'Your answers',
    about: 'Every answer that is recorded for you, the oldest first, with how it was given.',
    none: 'No answer is recorded.',
    part: cards,
    print: ({ consent_type_name, channel, state, pending, superseded, at, collected_at, ...rest }) => {
      const {
        method,
        source,
        ip,
        user_agent,
        text_version,
        reference,
        consent_string,
        actor,
        receipt,
        person_id,
        sequence,
      } = rest
      const evidence = {
        method: method?.replaceAll('_', ' '),
        source,
        ip_address: ip,
        browser: user_agent,
        version_of_the_text: text_version,
        reference,
        consent_string,
      }
      const record = {
        recorded_at: at,
        recorded_by: actor,
        number_of_the_change: sequence,
        profile: person_id,
        receipt,
      }
      return html`<article><h3>${timeOf(collected_at ?? at)}: ${consent_type_name} by ${channels[channel]} ${decisionOf(state, pending, 'refused')}${superseded && ' (an earlier answer that arrived later, and changed nothing)'}</h3><dl>${rowsOf(evidence)}${rowsOf(record)}</dl></article>`
    },
  }),
  section('address', {
    id: 'addresses',
    title: 'Whether messages reach you',
    about: 'What mail providers told of your addresses: messages that came back, and complaints.',
    none: 'Nothing is known of your addresses.',
    part: table('Address', 'Not written to because of', 'Since', 'Until'),
    print: ({ address, reason, suppressed_from, suppressed_until }) =>
      html`<tr>${cellOf('Address', address)}${cellOf('Not written to because of', reason?.replaceAll('_', ' '))}${cellOf('Since', suppressed_from)}${cellOf('Until', suppressed_until)}</tr>`,
  }),
  section('text', {
    id: 'texts',
    title: 'The texts that you answered to',
    about: 'The words that were shown to you, as far as an answer names them.',
    none: 'No answer names a text.',
    part: cards,
    print: ({ consent_type_name, version, language, text, url, created_at }) =>
      html`<article><h3>${consent_type_name}, version ${version}</h3><blockquote lang="${language}" dir="auto">${text}</blockquote><dl>${rowsOf({ shown_at: url, language, since: created_at })}</dl></article>`,
  }),
  section('link', {
    id: 'relationships',
    title: 'Relationships',
    about: 'People and records that are linked with you.',
    none: 'Nothing is linked with you.',
    part: table('With', 'As', 'Direction'),
    print: link => {
      return html`<tr>${cellOf('With', nameOf(link))}${cellOf('As', link.attribute_name)}${cellOf('Direction', link.direction === 'out' ? 'from you' : 'to you')}</tr>`
    },
  }),
  section('record', {
    id: 'records',
    title: 'Linked records',
    about: 'The records that are linked with you, such as orders or visits.',
    none: 'No records are linked with you.',
    part: cards,
    print: ({ stack_key, external_id, record_id, attribute_values, created_at, updated_at, version }) =>
      html`<article><h3 dir="auto">${stack_key} ${external_id ?? record_id}</h3><dl>${Object.entries(attribute_values).map(([name, value]) => rowOf(labelOf(name), value))}${rowsOf({ stored_at: created_at, ...(version > 1 && { changed_at: updated_at }) })}</dl></article>`,
  }),
  section('merge', {
    id: 'merges',
    title: 'Merged profiles',
    about: 'Profiles that were found to be of the same person, and were merged.',
    none: 'No profiles were merged.',
    part: cards,
    print: ({ at, merged_id, into_id, sequence, unmerged_sequence, undo }) =>
      html`<article><h3>${timeOf(at)}</h3><dl>${rowsOf({ merged_profile: merged_id, into: into_id, number_of_the_change: sequence, separated_by_the_change: unmerged_sequence, kept_to_undo_the_merge: undo })}</dl></article>`,
  }),
  section('segment', {
    id: 'segments',
    title: 'Groups',
    about: 'The groups that you are in because of your data, and the changes by which you entered or left one.',
    none: 'You are in no group.',
    part: table('Group', 'What', 'Number of the change'),
    print: ({ segment_key, segment_name, event, sequence }) =>
      html`<tr>${cellOf('Group', segment_name ?? segment_key)}${cellOf('What', event === 'member' ? 'you are in it' : event)}${cellOf('Number of the change', sequence)}</tr>`,
  }),
  section('hold', {
    id: 'holds',
    title: 'Legal holds',
    about: 'Why your data must not be erased at present, or were not to be erased in the past.',
    none: 'Your data are not under a legal hold.',
    part: cards,
    print: ({ created_at, reason, until, actor, released_at }) =>
      html`<article><h3>${timeOf(created_at)}</h3><dl>${rowsOf({ reason, until, by: actor, ended: released_at })}</dl></article>`,
  }),
  section('set_aside', {
    id: 'set-asides',
    title: 'Not the same as others',
    about: 'When somebody noted that you are not the same person as another one with similar data.',
    none: 'Nobody has noted this.',
    part: table('When', 'By'),
    print: ({ at, actor }) => html`<tr>${cellOf('When', timeOf(at))}${cellOf('By', actor)}</tr>`,
  }),
  section('retention', {
    id: 'lifetimes',
    title: 'Lifetimes',
    about: 'Rules by which your data will be erased or deleted soon.',
    none: 'No rule will erase or delete your data soon.',
    part: table('Rule', 'What', 'After days', 'Not before'),
    print: ({ rule_key, action, after_days, due_at }) =>
      html`<tr>${cellOf('Rule', rule_key)}${cellOf('What', action)}${cellOf('After days', after_days)}${cellOf('Not before', timeOf(due_at))}</tr>`,
  }),
  section('job_refusal', {
    id: 'job-refusals',
    title: 'Changes that were refused',
    about: 'Changes of many people at once that left your data as they were.',
    none: 'No such change was refused.',
    part: table('Change', 'Why'),
    print: ({ job_id, message }) => html`<tr>${cellOf('Change', job_id)}${cellOf('Why', message)}</tr>`,
  }),
  section('delivery', {
    id: 'deliveries',
    title: 'Sent to other systems',
    about: 'Other systems that were told about changes of your data, the oldest first. Entries are kept for 30 days.',
    none: 'Nothing was sent to other systems within the last 30 days.',
    part: table('Receiver', 'What', 'When', 'Outcome'),
    print: ({
      receiver,
      description,
      event,
      sequence,
      payload,
      status,
      created_at,
      last_attempt_at,
      response,
      error,
    }) => {
      const what = `${event}, change ${sequence}: ${payload === 'full' ? 'with the values' : 'identifiers only'}`
      const outcome = [status, response && `response: ${response}`, error].filter(Boolean).join('\n')
      return html`<tr>${cellOf('Receiver', [receiver, description].filter(Boolean).join('\n') || null)}${cellOf('What', what)}${cellOf('When', last_attempt_at ?? created_at)}${cellOf('Outcome', outcome)}</tr>`
    },
  }),
  section('erasure', {
    id: 'erasures',
    title: 'Erasures',
    about: 'When your data were erased.',
    none: 'Your data were not erased.',
    part: cards,
    print: ({ at, reason, records, actor, completed_at }) =>
      html`<article><h3>${timeOf(at)}</h3><dl>${rowsOf({ reason, linked_records: records === 'keep' ? 'kept' : 'erased too', by: actor, completed_at })}</dl></article>`,
  }),
  section('change', {
    id: 'changes',
    title: 'Changes',
    about: 'Every change of your data, the newest first: when, by whom, and the values before and after.',
    none: 'No changes are recorded.',
    part: cards,
    print: ({ at, operation, actor, sequence, version, request_id, before, after }) =>
      html`<article><h3>${timeOf(at)}: ${operations[operation]}</h3>${differencesOf(before, after)}<p class="small">By ${actor}. Number ${sequence}, version ${version}, request ${request_id}.</p></article>`,
  }),
  section('access', {
    id: 'accesses',
    title: 'Who looked',
    about: 'The requests that showed or changed your data, the newest first.',
    none: 'No request is recorded.',
    part: table('When', 'Who', 'What', 'From'),
    print: ({ at, subject, method, route, ip }) =>
      html`<tr>${cellOf('When', timeOf(at))}${cellOf('Who', subject)}${cellOf('What', `${method} ${route}`)}${cellOf('From', ip)}</tr>`,
  }),
]

type Values = Record<string, unknown> | null

/** The values of a change side by side. Attribute values are fields like the others. */
function differencesOf(before: Values, after: Values): Html {
  const [old, current] = [fieldsOf(before), fieldsOf(after)]
  const names = [...new Set([...Object.keys(old), ...Object.keys(current)])]
  if (names.length === 0) return html`<p class="none">The values are not kept any more.</p>`
  if (before === null) return html`<dl>${names.map(name => rowOf(labelOf(name), current[name]))}</dl>`
  const valueIn = (values: Record<string, unknown>, name: string) => (name in values ? values[name] : null)
  return html`<table><thead><tr><th scope="col">Field</th><th scope="col">Before</th><th scope="col">After</th></tr></thead><tbody>${names.map(
    name =>
      html`<tr><td>${labelOf(name)}</td>${cellOf('Before', valueIn(old, name))}${cellOf('After', valueIn(current, name))}</tr>`,
  )}</tbody></table>`
}

function fieldsOf(values: Values): Record<string, unknown> {
  const { attribute_values, ...fields } = values ?? {}
  return { ...fields, ...(attribute_values as Record<string, unknown> | undefined) }
}
