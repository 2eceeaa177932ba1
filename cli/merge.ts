import { InvalidArgumentError } from 'commander'
import type { Client, EntityAddress, MergeKeep, MergeResult, UnmergeResult } from '../client/index.ts'
import { confirm } from './confirm.ts'
import { newCommand } from './kith-command.ts'

/** The members of a result that both commands print. */
type Merged = Pick<MergeResult, 'dry_run' | 'merge_id' | 'completed' | 'merged'> & {
  changes: MergeResult['changes'] & { kept?: UnmergeResult['changes']['kept'] }
  person: Named
  unmerged?: Named
}
type Named = { id: string; external_id: string | null }

export const mergeCommand = (environment: NodeJS.ProcessEnv) =>
  joinCommand(
    environment,
    'merge',
    'Merges a person into another one, who survives: unset fields are filled, links move, and the identifiers of the merged person ' +
      'lead to the survivor. Prints what changed. unmerge undoes it.',
    (client, { survivor, from, keep }, options) =>
      client.people.merge(survivor, { from, ...(keep && { keep }) }, options),
  ).option(
    '--keep <field=person>',
    'The person whose value the survivor gets, survivor or other: email=other, attribute_values.city=survivor, external_id=other. ' +
      'Repeatable, or separated by commas.',
    { parse: parseKeep },
  )

export const unmergeCommand = (environment: NodeJS.ProcessEnv) =>
  joinCommand(
    environment,
    'unmerge',
    'Undoes a merge: the merged person returns with its identifiers, values, answers and links. What was written to the survivor ' +
      'since stays with the survivor. Prints what changed.',
    (client, { survivor, from }, options) => client.people.unmerge(survivor, { from }, options),
  )

type Pair = { survivor: EntityAddress; from: EntityAddress; keep?: MergeKeep }

/** An attribute key may contain a comma and an equals sign, so a part ends at `=survivor` or `=other`. */
function parseKeep(text: string, before: MergeKeep = {}): MergeKeep {
  const keep = { ...before }
  const parts = text.matchAll(/(.+?)=(survivor|other)(?:,|$)/gs).toArray()
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text)
    throw new InvalidArgumentError('Give a field and survivor or other, such as email=other.')
  for (const [, field, side] of parts) keep[field!.trim()] = side as MergeKeep[string]
  return keep
}

const joinCommand = (
  environment: NodeJS.ProcessEnv,
  name: 'merge' | 'unmerge',
  description: string,
  send: (client: Client, pair: Pair, options: { dryRun: boolean }) => Promise<Merged>,
) =>
  newCommand(environment, name, description)
    .examples(
      `${name} ada ada-newsletter --dry-run`,
      `${name} ada ada-newsletter --yes`,
      ...(name === 'merge' ? ['merge ada ada-newsletter --keep email=other,attribute_values.city=other'] : []),
    )
    .argument('<survivor>', 'The external identifier of the person who survives the merge.')
    .argument('<merged>', 'The external identifier of the person who is merged.')
    .option('--ids', 'Both are internal identifiers.')
    .option('--dry-run', 'Change nothing, and print what would change.')
    .yes()
    .atService('people:read people:write', async (client, survivor, from, options) => {
      const addressOf = (name: string) => (options.ids ? { id: name } : name)
      const { keep } = options as { keep?: MergeKeep }
      const pair = { survivor: addressOf(survivor), from: addressOf(from), ...(keep && { keep }) }
      const { dryRun = false } = options
      const question = name === 'merge' ? `Merge ${from} into ${survivor}?` : `Unmerge ${from} from ${survivor}?`
      if (!dryRun)
        await confirm(options, question, async () => linesOf(name, await send(client, pair, { dryRun: true })).slice(1))
      const value = await send(client, pair, { dryRun })
      return { value, lines: linesOf(name, value) }
    })

function linesOf(
  name: 'merge' | 'unmerge',
  { dry_run, merge_id, completed, merged, person, changes }: Merged,
): string[] {
  const [one, other] = [nameOf(merged), nameOf(person)]
  const done = name === 'merge' ? `Merged ${one} into ${other}` : `Unmerged ${one} from ${other}`
  const { fields, links, consents, aliases } = changes
  return [
    dry_run ? `Nothing has changed. Without --dry-run: ${done}.` : `${done} (merge ${merge_id}).`,
    ...(dry_run || completed ? [] : ['  kith is still moving links of others. They follow within seconds.']),
    ...fields.map(({ path, before, after }) => `  ${path}: ${JSON.stringify(before)} → ${JSON.stringify(after)}`),
    ...consents.map(
      ({ consent_type_id, channel, before, after }) =>
        `  consent ${consent_type_id} by ${channel}: ${answerText(before)} → ${answerText(after)}`,
    ),
    ...(name === 'merge'
      ? [
          `  links: ${links.moved_in} to ${one} lead to ${other}, ${links.moved_out} of ${one} move to ${other}, ${links.dropped} end`,
          `  identifiers that lead to ${other}: ${aliases.map(({ value }) => value).join(', ') || 'none'}`,
        ]
      : [
          `  links: ${links.moved_in} lead to ${one} again, ${links.moved_out} of ${one} return, ${links.dropped} have no target any more`,
          `  identifiers that lead to ${one} again: ${aliases.map(({ value }) => value).join(', ') || 'none'}`,
          ...(changes.kept ?? []).map(({ path, reason }) => `  ${other} keeps ${path}: ${keptTexts[reason]}`),
        ]),
  ]
}

const keptTexts = {
  written_since: 'it was written since the merge',
  log_emptied: 'the log no longer tells whether it was written since the merge',
  refused_by_another: 'another merged person has refused',
}

const nameOf = ({ external_id, id }: Named) => external_id ?? id

type Answer = MergeResult['changes']['consents'][number]['before']

function answerText(answer: Answer): string {
  if (answer === null) return 'no answer'
  const { state, pending, answered_at, person_id } = answer
  const word = state ? 'granted' : pending ? 'waits for its confirmation' : 'refused'
  return `${word} at ${answered_at}${person_id === null ? '' : ` by ${person_id}`}`
}
