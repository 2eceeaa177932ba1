import { client, readQuery } from '../app/client.ts'

export const settingsQuery = readQuery(['settings'], options => client.schema.settings(options))
