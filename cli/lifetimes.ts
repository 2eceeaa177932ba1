import type { RetentionRule } from '../client/index.ts'
import { givenOf, UsageError } from './command.ts'
import { confirm } from './confirm.ts'
import { connect } from './connection.ts'
import { newPlainCommand, type OptionsOf, type PlainCommand } from './kith-command.ts'
import { withNames } from './print-rows.ts'

const scope = 'people:erase'
const previewScope = `${scope} people:read`
const ruleColumns = ['id', 'key', 'segment', 'after_days', 'action', 'daily_limit', 'state', 'today']

/** A rule as a row: off, active, or the reason why it has paused itself. */
const rowOf = (rule: RetentionRule) => ({
  ...rule,
  state: rule.active ? 'active' : rule.paused ? `paused: ${rule.paused.reason}` : 'off',
  today: `${rule.today.told} told, ${rule.today.done} done`,
})

const addRuleOptions = (command: PlainCommand) =>
  command
    .option('--days <n>', 'How long a person has been in the segment, without a break.')
    .option('--action <action>', 'erase, with a certificate, or delete.', { choices: ['erase', 'delete'] })
    .option('--daily-limit <n>', 'The most people of a day.')

type RuleOptions = OptionsOf<typeof addRuleOptions> & { segment?: string }

function numberOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`--${name} takes a number.`)
  return Number(text)
}

const settingsOf = (options: RuleOptions) => {
  const [after_days, daily_limit] = [numberOf('days', options.days), numberOf('daily-limit', options.dailyLimit)]
  return {
    ...(after_days !== undefined && { after_days }),
    ...(daily_limit !== undefined && { daily_limit }),
    ...givenOf(options, 'action', 'segment'),
  }
}

const ruleArgument = ['<rule>', 'The number of the rule.'] as const

const idOf = (rule: string) => numberOf('rule', rule)!

export function retentionRuleCommand(environment: NodeJS.ProcessEnv) {
  const rules = newPlainCommand(
    environment,
    'retention-rule',
    'Manages retention rules, which erase or delete people who have been in a segment for long.',
  ).examples(
    'retention-rule create gone --days 1095 --action erase',
    'retention-rule preview 1',
    'retention-rule resume 1',
  )
  rules
    .addList(ruleColumns, 'list', 'Lists the rules.')
    .examples('retention-rule list')
    .atService(scope, async ({ retentionRules }) => (await retentionRules.list().all()).map(rowOf))
  rules
    .add('create', 'Creates a rule, which does nothing until it is resumed.')
    .examples('retention-rule create gone --days 1095 --action erase')
    .argument('<segment>', 'The key of the segment.')
    .with(addRuleOptions)
    .connection()
    .action(async (segment, options) => {
      const { after_days, action, ...settings } = settingsOf(options)
      if (after_days === undefined || action === undefined) throw new UsageError('--days and --action are missing.')
      const client = await connect(environment, options, { scope })
      const value = await client.retentionRules.create({ ...settings, segment, after_days, action })
      const next = `kith retention-rule preview ${value.id} shows whom it concerns, and kith retention-rule resume ${value.id} turns it on.`
      return { value, messages: [`Created the rule ${value.id}, ${value.key}. It is off.`, next] }
    })
  rules
    .add('patch', 'Changes a rule.')
    .examples('retention-rule patch 1 --daily-limit 100')
    .argument(...ruleArgument)
    .with(addRuleOptions)
    .option('--segment <key>', 'The segment.')
    .atService(scope, async (client, rule, options) => {
      const value = await client.retentionRules.patch(idOf(rule), settingsOf(options))
      return { value, messages: [`Changed the rule ${value.key}.`] }
    })
  rules
    .add('resume', 'Turns a rule on, also one that has stopped itself.')
    .examples('retention-rule resume 1 --yes')
    .argument(...ruleArgument)
    .yes()
    .atService(previewScope, async ({ retentionRules }, rule, options) => {
      const { count, daily_limit } = await retentionRules.preview(idOf(rule))
      const concerned = `It concerns ${count} ${count === 1 ? 'person' : 'people'} today, at most ${daily_limit} of them a day.`
      await confirm(options, `Turn the rule on? ${concerned}`)
      const value = await retentionRules.patch(idOf(rule), { active: true })
      return { value, messages: [`The rule ${value.key} is on.`] }
    })
  rules
    .add('pause', 'Turns a rule off.')
    .examples('retention-rule pause 1 --yes')
    .argument(...ruleArgument)
    .yes()
    .atService(previewScope, async ({ retentionRules }, rule) => {
      const value = await retentionRules.patch(idOf(rule), { active: false })
      return { value, messages: [`The rule ${value.key} is off.`] }
    })
  rules
    .add('delete', 'Deletes a rule. The people stay.')
    .examples('retention-rule delete 1 --yes')
    .argument(...ruleArgument)
    .yes()
    .atService(scope, async (client, rule, options) => {
      await confirm(options, `Delete the rule ${rule}? The people stay.`)
      await client.retentionRules.delete(idOf(rule))
      return { value: { id: idOf(rule) }, messages: [`Deleted the rule ${rule}.`] }
    })
  rules
    .add('preview', 'Prints whom a rule would erase or delete today: their number and the first ones.')
    .examples('retention-rule preview 1')
    .argument(...ruleArgument)
    .atService(previewScope, async (client, rule) => {
      const value = await client.retentionRules.preview(idOf(rule))
      const { count, held, daily_limit, would_pause, items } = value
      const messages = [
        `${count} ${count === 1 ? 'person' : 'people'} today, at most ${daily_limit} a day; ${held} more are held.`,
      ]
      if (would_pause) messages.push('The rule would stop itself: this is more than a tenth of all people in a day.')
      const lines = items.map(({ id, external_id, entered_at }) => `${external_id ?? id}\tsince ${entered_at}`)
      return { value, lines, messages }
    })
  rules
    .addList(['day', 'told', 'done'], 'runs', 'Lists what a rule has done, by day, newest first.')
    .examples('retention-rule runs 1')
    .argument(...ruleArgument)
    .atService(scope, async ({ retentionRules }, rule) => retentionRules.runs(idOf(rule)))
  return rules
}

const personArgument = ['<person>', 'The external identifier.'] as const
const idOption = ['--id', 'The person is given by the internal identifier.'] as const

const personOf = (person: string, { id }: { id?: true }) => (id ? { id: person } : person)

export function holdCommand(environment: NodeJS.ProcessEnv) {
  const hold = newPlainCommand(
    environment,
    'hold',
    'Holds people: no rule erases them, and by hand only --override-hold does.',
  ).examples('hold set ada --reason "Case 2026-17"', 'hold list', 'hold end ada')
  hold
    .addList(['people', 'reason', 'until', 'actor', 'created_at'], 'list', 'Lists the holds that are in force.')
    .examples('hold list')
    .atService(scope, async ({ holds }) => (await holds.list().all()).map(withNames))
  hold
    .add('set', 'Holds a person, or replaces the reason and the end of its hold.')
    .examples('hold set ada --reason "Case 2026-17" --until 2028-01-01T00:00:00Z')
    .option('--reason <text>', 'Why. The change log keeps it, so it must not name the person.', { required: true })
    .option('--until <time>', 'When the hold ends by itself.')
    .argument(...personArgument)
    .option(...idOption)
    .atService(scope, async (client, person, options) => {
      const { reason, until = null } = options
      const value = await client.holds.set(personOf(person, options), { reason, until })
      return { value, messages: [`${person} is held.`] }
    })
  hold
    .add('end', 'Ends the hold of a person.')
    .examples('hold end ada --yes')
    .argument(...personArgument)
    .option(...idOption)
    .yes()
    .atService(scope, async (client, person, options) => {
      await confirm(options, `End the hold of ${person}?`)
      await client.holds.end(personOf(person, options))
      return { value: { person }, messages: [`${person} is not held any more.`] }
    })
  return hold
}
