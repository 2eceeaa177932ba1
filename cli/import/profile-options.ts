import { basename } from 'node:path'
import { InvalidArgumentError } from 'commander'
import { isDateTime } from '../../src/values/formats.ts'
import { utcTime } from '../../src/values/instant.ts'
import { normalize } from '../../transfer/normalize-name.ts'
import { parsePair, UsageError } from '../command.ts'
import type { OptionsOf, PlainCommand } from '../kith-command.ts'
import { createPhoneSplitter } from './phone.ts'
import type { ProfileOptions } from './profile-columns.ts'
import type { Profile } from './profile-file.ts'
import { loadTimeZone } from './time-zone.ts'

/** Adds the options of `kith import` for the contact exports of other products. */
export const profileOptions = (command: PlainCommand) =>
  command
    .option(
      '--profile <name|file>',
      'CSV of people: Read the contact export of a product: klaviyo, hubspot, mailchimp, or as this file describes it.',
    )
    .option(
      '--consent-type <channel|column=key>',
      'Profile: The consent type of a channel or a column (repeatable). Default: that of the channel.',
      { parse: parsePair, default: new Map(), shown: 'none' },
    )
    .option('--external-id <source>', 'Profile: The external_id is the identifier in the product, or the email.', {
      choices: ['id', 'email'],
      default: 'id',
    })
    .option('--exported-at <time>', 'Profile: The time of the export, for refusals without a time.', {
      parse: parseTime,
    })
    .option(
      '--status <status>',
      'Profile: The status of all contacts of the file, such as unsubscribed. Default: as the file name begins.',
    )
    .option(
      '--phone-country <code>',
      'People: The country of phone numbers without a prefix, such as DE. Default: that of the settings.',
    )

type ProfileCommandOptions = OptionsOf<typeof profileOptions>

/** Reads a profile and its options. `file` is the name of the imported file. */
export async function readProfileOptions(
  name: string,
  options: ProfileCommandOptions,
  file: string,
  pathOf: (name: string) => string,
): Promise<ProfileOptions> {
  // The validator of profiles loads slowly, so only commands with a profile load it.
  const { readProfile } = await import('./profile-file.ts')
  const profile = await readProfile(name, pathOf)
  return {
    profile,
    externalId: options.externalId,
    consentTypes: options.consentType,
    status: statusOf(profile, file, options.status),
    exportedAt: options.exportedAt ?? null,
    timeZone: profile.time_zone === undefined ? null : await loadTimeZone(profile.time_zone),
    splitPhone: createPhoneSplitter(options.phoneCountry),
  }
}

/** The status of the contacts of a file: from `--status`, else from the word that the name of the file begins with. */
function statusOf({ product, statuses }: Profile, file: string, option: string | undefined): string | null {
  if (!statuses) {
    if (option === undefined) return null
    throw new UsageError(`--status: the files of ${product} have no status.`)
  }
  const word = option ?? /^[a-z]+/i.exec(basename(file))?.[0] ?? ''
  const status = statuses.find(each => normalize(each) === normalize(word))
  if (status !== undefined) return status
  throw new UsageError(
    `The status of the contacts of ${file} is unknown, because ${product} exports one file for each status. Give --status ` +
      `with one of ${statuses.join(', ')}.`,
  )
}

function parseTime(text: string): string {
  if (!isDateTime(text)) throw new InvalidArgumentError('Give a date and time with its offset: 2026-01-31T09:00:00Z.')
  if (Date.parse(text) > Date.now()) throw new InvalidArgumentError('Give a time in the past.')
  return utcTime(text)
}
