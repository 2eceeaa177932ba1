import type { Erased } from '../client/index.ts'
import { confirm } from './confirm.ts'
import { newCommand } from './kith-command.ts'
import { otherHoldersText } from './other-holders.ts'

export const eraseCommand = (environment: NodeJS.ProcessEnv) =>
  newCommand(
    environment,
    'erase',
    'Erases a person: the profile, the answers, the links, and every value in the change log. It cannot be undone. Prints the ' +
      'certificate, which kith verify verifies; keep it outside of the database.',
  )
    .examples(
      'erase ada --reason "Request of 2026-01-01" --dry-run',
      'erase ada --reason "Request of 2026-01-01" --records linked --yes > ada.certificate',
    )
    .argument('<person>', 'The external identifier, also the last one of a deleted person.')
    .option('--reason <text>', 'Why. It stays, so it must not name the person.', { required: true })
    .option('--records <which>', 'linked: also the records that are linked to this person and to nobody else.', {
      choices: ['keep', 'linked'],
      default: 'keep',
    })
    .option('--id', 'The person is given by the internal identifier.')
    .option('--override-hold', 'Erase the person although it is under a legal hold.')
    .option('--dry-run', 'Erase nothing, and print what would be removed.')
    .yes()
    .atService('people:erase', async (client, person, options) => {
      const { reason, records, overrideHold = false, dryRun = false } = options
      const why = { reason, records, ...(overrideHold && { override_hold: true }) }
      const send = (dryRun: boolean) => client.people.erase(options.id ? { id: person } : person, why, { dryRun })
      if (!dryRun)
        await confirm(options, `Erase ${person}? It cannot be undone.`, async () => linesOf(await send(true)))
      const value = await send(dryRun)
      const { certificate } = value
      if (dryRun) return { value, lines: linesOf(value) }
      return { value, lines: certificate === null ? [] : [certificate], messages: linesOf(value) }
    })

function linesOf(value: Erased): string[] {
  const { erasure, dry_run, completed } = value
  const said = dry_run ? 'would be removed' : 'removed'
  return [
    `${dry_run ? 'This would erase' : 'Erased'} the person ${erasure.person_id}${andOthers(erasure)}.`,
    ...Object.entries(erasure.removed).map(([table, rows]) => `  ${String(rows).padStart(8)} ${table} ${said}`),
    `  ${String(erasure.tombstones).padStart(8)} keyed hashes ${dry_run ? 'would stay' : 'stay'}, so that nobody comes back by mistake`,
    'Not removed, because kith does not have them:',
    ...erasure.not_removed.map(each => `  - ${each}`),
    ...otherHoldersText(value),
    ...(dry_run || completed
      ? []
      : ['The log is long, and the rest of it is being erased. Ask again for the certificate.']),
  ]
}

function andOthers({ merged_ids, record_ids }: Erased['erasure']): string {
  const others = [
    ...(merged_ids.length > 0 ? [`${merged_ids.length} who had been merged into it`] : []),
    ...(record_ids.length > 0 ? [`${record_ids.length} ${record_ids.length === 1 ? 'record' : 'records'}`] : []),
  ]
  return others.length > 0 ? `, with ${others.join(' and ')}` : ''
}
