import { type Command, Option } from 'commander'
import type { RetentionRule } from '../client/index.ts'
import { givenOf, type JsonOption, newCommand, newPlainCommand, printResult, UsageError } from './command.ts'
import { addYesOption, confirm, type YesOption } from './confirm.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { withNames } from './print-rows.ts'
import { atService, listAtService } from './service-commands.ts'

type Confirmed = JsonOption & YesOption
type RuleOptions = ConnectionOptions &
  JsonOption & { days?: string; action?: 'erase' | 'delete'; dailyLimit?: string; segment?: string }

const scope = 'people:erase'
const previewScope = `${scope} people:read`
const ruleColumns = ['id', 'key', 'segment', 'after_days', 'action', 'daily_limit', 'state', 'today']

/** A rule as a row: off, active, or why it has stopped itself. */
const rowOf = (rule: RetentionRule) => ({
  ...rule,
  state: rule.active ? 'active' : rule.paused ? `paused: ${rule.paused.reason}` : 'off',
  today: `${rule.today.told} told, ${rule.today.done} done`,
})

export function retentionRuleCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Manages retention rules, which erase or delete people who have been in a segment for long.'
  const parts = [listCommand, createCommand, patchCommand, resumeCommand, pauseCommand, deleteCommand, previewCommand]
  return newPlainCommand('retention-rule', description, [
    'retention-rule create gone --days 1095 --action erase',
    'retention-rule preview 1',
    'retention-rule resume 1',
  ]).addSubcommands(environment, [...parts, runsCommand])
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newPlainCommand('list', 'Lists the rules.', ['retention-rule list'])
  return listAtService(environment, command, scope, ruleColumns, async ({ retentionRules }) =>
    (await retentionRules.list().all()).map(rowOf),
  )
}

const addRuleOptions = (command: Command) =>
  command
    .option('--days <n>', 'How long a person has been in the segment, without a break.')
    .addOption(new Option('--action <action>', 'erase, with a certificate, or delete.').choices(['erase', 'delete']))
    .option('--daily-limit <n>', 'The most people of a day.')

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

function createCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand('create', 'Creates a rule, which does nothing until it is resumed.', [
    'retention-rule create gone --days 1095 --action erase',
  ]).argument('<segment>', 'The key of the segment.')
  return addConnectionOptions(addRuleOptions(command)).action(async (segment: string, options: RuleOptions) => {
    const { after_days, action, ...settings } = settingsOf(options)
    if (after_days === undefined || action === undefined) throw new UsageError('--days and --action are missing.')
    const { client } = await connect(environment, options, { scope })
    const value = await client.retentionRules.create({ ...settings, segment, after_days, action })
    const next = `kith retention-rule preview ${value.id} shows whom it concerns, and kith retention-rule resume ${value.id} turns it on.`
    printResult(options, { value, messages: [`Created the rule ${value.id}, ${value.key}. It is off.`, next] })
  })
}

const addRule = (command: Command) => command.argument('<rule>', 'The number of the rule.')

const idOf = (rule: string) => numberOf('rule', rule)!

function patchCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand('patch', 'Changes a rule.', ['retention-rule patch 1 --daily-limit 100'])
  const withOptions = addRuleOptions(addRule(command)).option('--segment <key>', 'The segment.')
  return atService(environment, withOptions, scope, async (client, rule: string, options: RuleOptions) => {
    const value = await client.retentionRules.patch(idOf(rule), settingsOf(options))
    printResult(options, { value, messages: [`Changed the rule ${value.key}.`] })
  })
}

const resumeCommand = (environment: NodeJS.ProcessEnv): Command =>
  activeCommand(environment, 'resume', 'Turns a rule on, also one that has stopped itself.')

const pauseCommand = (environment: NodeJS.ProcessEnv): Command =>
  activeCommand(environment, 'pause', 'Turns a rule off.')

function activeCommand(environment: NodeJS.ProcessEnv, name: 'pause' | 'resume', description: string): Command {
  const active = name === 'resume'
  const command = addYesOption(addRule(newCommand(name, description, [`retention-rule ${name} 1 --yes`])))
  return atService(environment, command, previewScope, async (client, rule: string, options: Confirmed) => {
    if (active) {
      const { count, daily_limit } = await client.retentionRules.preview(idOf(rule))
      const concerned = `It concerns ${count} people today, at most ${daily_limit} of them a day.`
      await confirm(options, `Turn the rule on? ${concerned}`)
    }
    const value = await client.retentionRules.patch(idOf(rule), { active })
    printResult(options, { value, messages: [`The rule ${value.key} is ${active ? 'on' : 'off'}.`] })
  })
}

function deleteCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand('delete', 'Deletes a rule. The people stay.', ['retention-rule delete 1 --yes'])
  const asking = addYesOption(addRule(command))
  return atService(environment, asking, scope, async (client, rule: string, options: Confirmed) => {
    await confirm(options, `Delete the rule ${rule}? The people stay.`)
    await client.retentionRules.delete(idOf(rule))
    printResult(options, { value: { id: idOf(rule) }, messages: [`Deleted the rule ${rule}.`] })
  })
}

function previewCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Prints whom a rule would erase or delete today: their number and the first ones.'
  const command = addRule(newCommand('preview', description, ['retention-rule preview 1']))
  return atService(environment, command, previewScope, async (client, rule: string, options: JsonOption) => {
    const value = await client.retentionRules.preview(idOf(rule))
    const { count, held, daily_limit, would_pause, items } = value
    printResult(options, {
      value,
      lines: items.map(({ id, external_id, entered_at }) => `${external_id ?? id}\tsince ${entered_at}`),
      messages: [
        `${count} people today, at most ${daily_limit} a day; ${held} more are held.`,
        ...(would_pause ? ['The rule would stop itself: this is more than a tenth of all people in a day.'] : []),
      ],
    })
  })
}

function runsCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Lists what a rule has done, by day, newest first.'
  const command = addRule(newPlainCommand('runs', description, ['retention-rule runs 1']))
  return listAtService(environment, command, scope, ['day', 'told', 'done'], ({ retentionRules }, rule: string) =>
    retentionRules.runs(idOf(rule)),
  )
}

export function holdCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Holds people: no rule erases them, and by hand only --override-hold does.'
  return newPlainCommand('hold', description, [
    'hold set ada --reason "Case 2026-17"',
    'hold list',
    'hold end ada',
  ]).addSubcommands(environment, [listHoldsCommand, setHoldCommand, endHoldCommand])
}

function listHoldsCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newPlainCommand('list', 'Lists the holds that are in force.', ['hold list'])
  const columns = ['people', 'reason', 'until', 'actor', 'created_at']
  return listAtService(environment, command, scope, columns, async ({ holds }) =>
    (await holds.list().all()).map(withNames),
  )
}

type HoldOptions = JsonOption & { id?: true; reason: string; until?: string }

const addPerson = (command: Command) =>
  command
    .argument('<person>', 'The external identifier.')
    .option('--id', 'The person is given by the internal identifier.')

const personOf = (person: string, { id }: { id?: true }) => (id ? { id: person } : person)

function setHoldCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand('set', 'Holds a person, or replaces the reason and the end of its hold.', [
    'hold set ada --reason "Case 2026-17" --until 2028-01-01T00:00:00Z',
  ])
    .requiredOption('--reason <text>', 'Why. The change log keeps it, so it must not name the person.')
    .option('--until <time>', 'When the hold ends by itself.')
  return atService(environment, addPerson(command), scope, async (client, person: string, options: HoldOptions) => {
    const { reason, until = null } = options
    const value = await client.holds.set(personOf(person, options), { reason, until })
    printResult(options, { value, messages: [`${person} is held.`] })
  })
}

function endHoldCommand(environment: NodeJS.ProcessEnv): Command {
  const command = addYesOption(addPerson(newCommand('end', 'Ends the hold of a person.', ['hold end ada --yes'])))
  type Options = Confirmed & { id?: true }
  return atService(environment, command, scope, async (client, person: string, options: Options) => {
    await confirm(options, `End the hold of ${person}?`)
    await client.holds.end(personOf(person, options))
    printResult(options, { value: { person }, messages: [`${person} is not held any more.`] })
  })
}
