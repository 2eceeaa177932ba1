import { peopleStackId } from '../../organizations/definitions.ts'
import { type Html, html } from '../../values/html.ts'
import type { DossierLine, SectionType } from '../dossier-schema.ts'
import type { Label } from './languages/en.ts'
import { attributeLabel, cellsOf, labelOf, type Page, printed, printValue, rowOf, rowsOf, timeOf } from './values.ts'

type LineOf<Type extends DossierLine['type']> = Extract<DossierLine, { type: Type }>

/** How to print the lines of a type: as rows of a list, as rows of a table with these columns, or one by one. */
type Section<Type extends SectionType> = {
  form: 'list' | 'cards' | readonly Label[]
  /** `previous` is the previous line of the section. */
  print(page: Page, line: LineOf<Type>, previous: LineOf<Type> | undefined): Html
}

const stackOf = ({ definitions }: Page, key: string) => definitions.stacks.find(stack => stack.key === key)

function decisionOf({ words }: Page, state: boolean, pending: boolean | undefined, negative: string): Html {
  const { decisions } = words
  if (pending) return html`<span class="no">${decisions.pending}</span>`
  return state ? html`<span class="yes">${decisions.allowed}</span>` : html`<span class="no">${negative}</span>`
}

const textId = (consent_type_id: number, version: number) => `text-${consent_type_id}-${version}`

/** The requests that only read although their method is not GET. */
const isReading = /\/(list|filter|get|aggregate|related|lookup|search|contactable|duplicates|export|consent-links)$/

/** The sections of the page by the type of their lines. */
export const pageSections: { [Type in SectionType]: Section<Type> } = {
  profile: {
    form: 'list',
    print: (page, { type: _, state, ...fields }) =>
      html`${Object.entries(fields).map(([name, value]) => rowOf(page, labelOf(page, name), value))}${rowOf(page, labelOf(page, 'state'), page.words.states[state])}`,
  },
  attribute: {
    form: 'list',
    print: (page, { key, description, value }) =>
      html`<div><dt dir="auto">${attributeLabel(page, peopleStackId, key)}${description && html`<br><small>${description}</small>`}</dt><dd>${printValue(page, value)}</dd></div>`,
  },
  match_keys: {
    form: 'list',
    print: (page, { email, mobile, name }) =>
      html`${email !== null && rowOf(page, labelOf(page, 'email'), email)}${rowsOf(page, { mobile, name: name?.replaceAll('\n', ' ') })}`,
  },
  alias: {
    form: ['name', 'since', 'from'],
    print: (page, { value, created_at, merge_id }) =>
      cellsOf(page, { name: value, since: created_at, from: page.words.aliasFrom(merge_id) }),
  },
  consent: {
    form: ['purpose', 'channel', 'now', 'because'],
    print: (page, { consent_type_name, channel, state, pending, source, answered_at }) =>
      cellsOf(page, {
        purpose: consent_type_name,
        channel: page.words.channels[channel],
        now: decisionOf(page, state, pending, page.words.decisions.forbidden),
        because: html`${page.words.sources[source]}${answered_at && html`, ${timeOf(page, answered_at)}`}`,
      }),
  },
  consent_answer: { form: 'cards', print: printAnswer },
  address: {
    form: ['address', 'events', 'reason', 'since', 'until'],
    print: (page, { address, events, reason, suppressed_from, suppressed_until }) =>
      cellsOf(page, {
        address,
        events: Object.fromEntries(
          Object.entries((events ?? {}) as Record<string, unknown>).map(([name, event]) => [
            page.words.events[name as keyof typeof page.words.events] ?? labelOf(page, name),
            event,
          ]),
        ),
        reason: reason && (page.words.events[reason as keyof typeof page.words.events] ?? reason),
        since: suppressed_from,
        until: suppressed_until,
      }),
  },
  text: {
    form: 'cards',
    print: (page, { consent_type_id, consent_type_name, version, language, text, url, created_at }) =>
      html`<article id="${textId(consent_type_id, version)}"><h3>${consent_type_name}, ${page.words.textVersion(version)}</h3><blockquote lang="${language.replaceAll('_', '-')}" dir="auto">${text}</blockquote><dl>${rowsOf(page, { url, shown_from: created_at })}</dl></article>`,
  },
  link: {
    form: ['with', 'as', 'direction'],
    print: (page, { stack_key, external_id, id, attribute_name, direction }) => {
      const kind = stack_key === null ? page.words.person : (stackOf(page, stack_key)?.name ?? stack_key)
      return cellsOf(page, {
        with: `${kind} ${external_id ?? id ?? ''}`,
        as: attribute_name,
        direction: page.words.directions[direction],
      })
    },
  },
  record: {
    form: 'cards',
    print: (
      page,
      { stack_key, external_id, record_id, attribute_values, created_at, updated_at, version },
      previous,
    ) => {
      const stack = stackOf(page, stack_key)
      const dates = { created_at, ...(version > 1 && { updated_at }) }
      return html`${previous?.stack_key !== stack_key && html`<h3 class="group" dir="auto">${stack?.name ?? stack_key}</h3>`}<article><h4 dir="auto">${external_id ?? record_id}</h4><dl>${Object.entries(attribute_values).map(([key, value]) => rowOf(page, attributeLabel(page, stack?.id, key), value))}${Object.entries(dates).map(([name, value]) => rowOf(page, labelOf(page, name), value))}</dl></article>`
    },
  },
  merge: {
    form: 'cards',
    print: (page, { at, merged_id, into_id, sequence, unmerged_sequence, undo }) =>
      html`<article><h3>${timeOf(page, at)}</h3><dl>${rowsOf(page, { merged_id, into_id, sequence, unmerged_sequence, undo })}</dl></article>`,
  },
  segment: {
    form: ['group', 'what', 'sequence'],
    print: (page, { segment_key, segment_name, event, sequence }) =>
      cellsOf(page, { group: segment_name ?? segment_key, what: page.words.memberships[event], sequence }),
  },
  hold: {
    form: 'cards',
    print: (page, { created_at, reason, until, actor, released_at }) =>
      html`<article><h3>${timeOf(page, created_at)}</h3><dl>${rowsOf(page, { reason, until, by: actor, released_at })}</dl></article>`,
  },
  set_aside: { form: ['when', 'by'], print: (page, { at, actor }) => cellsOf(page, { when: at, by: actor }) },
  retention: {
    form: ['rule', 'what', 'after_days', 'due_at'],
    print: (page, { rule_key, action, after_days, due_at }) =>
      cellsOf(page, { rule: rule_key, what: page.words.actions[action], after_days, due_at }),
  },
  job_refusal: {
    form: ['job', 'because'],
    print: (page, { job_id, message }) => cellsOf(page, { job: job_id, because: message }),
  },
  delivery: { form: ['receiver', 'what', 'when', 'outcome'], print: printDelivery },
  erasure: {
    form: 'cards',
    print: (page, { at, reason, records, actor, completed_at }) =>
      html`<article><h3>${timeOf(page, at)}</h3><dl>${rowsOf(page, { reason, records: page.words.records[records], by: actor, completed_at })}</dl></article>`,
  },
  change: { form: 'cards', print: printChange },
  access: {
    form: ['when', 'who', 'what', 'ip'],
    print: (page, { at, subject, method, route, ip }) => {
      const { looked, wrote } = page.words
      const what = method === 'GET' || isReading.test(route) ? looked : wrote
      return cellsOf(page, { when: at, who: subject, what: html`${what}<br><small>${method} ${route}</small>`, ip })
    },
  },
}

function printAnswer(page: Page, answer: LineOf<'consent_answer'>): Html {
  const { words } = page
  const { consent_type_id, consent_type_name, channel, state, pending, superseded, at, collected_at } = answer
  const { method, source, ip, user_agent, text_version, reference, consent_string } = answer
  const { actor: recorded_by, person_id, sequence, receipt } = answer
  const version = text_version !== undefined && text_version !== null && words.textVersion(text_version)
  const text = version && html`<a href="#${textId(consent_type_id, text_version!)}">${version}</a>`
  const how = method && words.methods[method]
  const evidence = { method: how, source, ip, user_agent, text_version: text || undefined, reference, consent_string }
  const rows = rowsOf(page, { ...evidence, recorded_at: at, recorded_by, sequence, person_id, receipt })
  const decision = decisionOf(page, state, pending, words.decisions.refused)
  return html`<article><h3>${consent_type_name}, ${words.channels[channel]}: ${decision}, ${timeOf(page, collected_at ?? at)}${superseded && ` (${words.decisions.superseded})`}</h3><dl>${rows}</dl></article>`
}

function printDelivery(page: Page, delivery: LineOf<'delivery'>): Html {
  const { words } = page
  const { receiver, description, event, sequence, payload, status, created_at, last_attempt_at } = delivery
  const { response_status, response, error } = delivery
  return cellsOf(page, {
    receiver: [receiver, description].filter(Boolean).join('\n') || null,
    what: `${event}, ${words.labels.sequence} ${sequence}: ${words.payloads[payload]}`,
    when: last_attempt_at ?? created_at,
    outcome: [words.deliveries[status], response_status, response, error].filter(Boolean).join('\n'),
  })
}

type Values = Record<string, unknown> | null

function printChange(page: Page, change: LineOf<'change'>): Html {
  const { words } = page
  const { at, operation, actor, sequence, version, request_id, before, after } = change
  return html`<article><h3>${timeOf(page, at)}: ${words.operations[operation]}</h3>${differencesOf(page, before, after)}<p class="small">${words.changeBy(actor, sequence, version, request_id)}</p></article>`
}

/** The values before and after a change, side by side: first the fields, then the attributes. */
function differencesOf(page: Page, before: Values, after: Values): Html {
  const { labels, valuesGone } = page.words
  const rows = [
    ...rowsBetween(fieldsOf(page, before), fieldsOf(page, after), name =>
      name === 'consents' ? page.words.sections.consent[0] : labelOf(page, name),
    ),
    ...rowsBetween(attributesOf(before), attributesOf(after), key => attributeLabel(page, peopleStackId, key)),
  ]
  if (rows.length === 0) return html`<p class="none">${valuesGone}</p>`
  if (before === null) return html`<dl>${rows.map(([label, , value]) => rowOf(page, label, value))}</dl>`
  const { field, before: old, after: current } = labels
  return html`<table><thead><tr>${[field, old, current].map(label => html`<th scope="col">${label}</th>`)}</tr></thead><tbody>${rows.map(
    ([label, was, is]) =>
      html`<tr><td>${label}</td><td data-label="${old}">${printed(page, was)}</td><td data-label="${current}">${printed(page, is)}</td></tr>`,
  )}</tbody></table>`
}

const attributesOf = (values: Values) => (values?.attribute_values ?? {}) as Record<string, unknown>

type Answer = {
  consent_type_id: number
  channel: keyof Page['words']['channels']
  state: boolean | null
  pending?: boolean
}

/** The fields of a change. Answers are shown in words, because another section has their evidence. */
function fieldsOf(page: Page, values: Values): Record<string, unknown> {
  const { attribute_values: _, state, consents, ...fields } = values ?? {}
  const { states } = page.words
  const shown = { ...(state !== undefined && { state: states[state as keyof typeof states] }), ...fields }
  return Array.isArray(consents) ? { ...shown, consents: answersIn(page, consents as Answer[]) } : shown
}

function answersIn(page: Page, answers: Answer[]): Html {
  const { words, definitions } = page
  return html`${answers.map(({ consent_type_id, channel, state, pending }) => {
    const type = definitions.consent_types.find(({ id }) => id === consent_type_id)
    const decision = state === null ? printValue(page, null) : decisionOf(page, state, pending, words.decisions.refused)
    return html`<div>${type?.name ?? consent_type_id}, ${words.channels[channel]}: ${decision}</div>`
  })}`
}

function rowsBetween(
  before: Record<string, unknown>,
  after: Record<string, unknown>,
  toLabel: (name: string) => string,
): [label: string, before: unknown, after: unknown][] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names].map(name => [toLabel(name), before[name], after[name]])
}
