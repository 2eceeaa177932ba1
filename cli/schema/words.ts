import type { ConsentType } from '../../client/index.ts'
import { rulesOf } from '../../src/attributes/rules.ts'
import type { Create, Fields, Kind, Missing, Plan, Step } from './plan.ts'

const kinds: Record<Kind, string> = {
  stack: 'stack',
  attribute: 'attribute',
  consent_type: 'consent type',
  segment: 'segment',
}

/** Formats a plan, one line per step: `+` creates, `~` changes, `-` archives, `?` is not in the file. */
export function planLines({ steps, missing }: Plan): string[] {
  return [...steps.map(stepText), ...missing.map(missingText)]
}

/** Formats one step as a line. */
export function stepText(step: Step): string {
  const subject = `${kinds[step.kind]} ${step.name}`
  if (step.action === 'create') return `+ ${subject} (${createText(step)})`
  if (step.action === 'archive') return `- ${subject}: archived`
  return `~ ${subject}: ${changesText(step.fields)}`
}

const hints: Record<Kind, string> = {
  stack: ', because stacks cannot be archived',
  attribute: ' without --archive-missing',
  consent_type: ' without --archive-missing',
  segment: '. Delete it with `kith segments delete`',
}

function missingText({ kind, name }: Missing): string {
  return `? ${kinds[kind]} ${name} is not in the file: it stays${hints[kind]}`
}

function createText(step: Create): string {
  if (step.kind === 'stack') {
    const { kind, retention_days, label, summary, erased_with } = step.definition
    return [
      kind,
      ...(retention_days === null ? [] : [`erased after ${retention_days} days`]),
      ...(label === null ? [] : [`label ${label}`]),
      ...(summary === null ? [] : [`summary ${JSON.stringify(summary)}`]),
      ...(erased_with === null ? [] : [`erased with ${erased_with}`]),
    ].join(', ')
  }
  if (step.kind === 'segment') return JSON.stringify(step.definition.filter)
  if (step.kind === 'attribute') {
    const { definition } = step
    const { type, target_stack, cardinality, indexed, searchable } = definition
    const target = type === 'stack' ? `to ${target_stack}` : type === 'person' ? 'to a person' : type
    const flags = [cardinality === 'many' && 'many', indexed && 'indexed', searchable && 'searchable'].filter(Boolean)
    return [target, ...flags, ...Object.entries(rulesOf(definition)).map(ruleText)].join(', ')
  }
  const { channels, mandatory, state } = step.definition
  return [valueText(channels), ...(mandatory ? ['mandatory'] : []), ...(state === 'archived' ? [state] : [])].join(', ')
}

const ruleText = ([name, rule]: [string, unknown]) => (rule === true ? name : `${name} ${valueText(rule)}`)

function changesText(fields: Fields): string {
  return Object.entries(fields)
    .map(([field, { before, after }]) => `${field} ${valueText(before)} → ${valueText(after)}`)
    .join('; ')
}

function valueText(value: unknown): string {
  if (!Array.isArray(value) || typeof value[0] !== 'object') return JSON.stringify(value)
  const channels = value as ConsentType['channels']
  const marksOf = ({ is_default, double_opt_in }: (typeof channels)[number]) =>
    [is_default && 'default', double_opt_in && 'double opt-in'].filter(Boolean).join(', ')
  return channels.map(entry => `${entry.channel}${marksOf(entry) && ` (${marksOf(entry)})`}`).join(' and ')
}
