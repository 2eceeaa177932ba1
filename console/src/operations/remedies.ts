/** The pages of the console that mend the findings of a check. The others are mended on the machine of the service. */
const pages = {
  webhooks: { name: 'webhooks', link: { to: '/webhooks' } },
  followers: { name: 'webhooks', link: { to: '/webhooks' } },
  indexes: { name: 'schema', link: { to: '/schema' } },
  keys: { name: 'keys', link: { to: '/access', search: { tab: 'keys' } } },
} as const

export const pageOf = (check: string) => (Object.hasOwn(pages, check) ? pages[check as keyof typeof pages] : undefined)

/** The command that an advice names, to copy. Undefined if it names none that runs as it is. */
export function commandOf(advice: string): string | undefined {
  const [, command] = /\b[Rr]un (kith (?:doctor|migrate|distribute|keys (?:rotate|rewrap)))\b/.exec(advice) ?? []
  return command
}

/** The command that makes a backup of today. */
export const backupCommand = (now: Date): string => `kith backup kith-${now.toISOString().slice(0, 10)}.backup`
