import { client, readQuery } from '../app/client.ts'

export const doctorQuery = readQuery(['operations', 'doctor'], options => client.operations.doctor(options))

export const metricsQuery = readQuery(['operations', 'metrics'], options => client.operations.metrics(options))
