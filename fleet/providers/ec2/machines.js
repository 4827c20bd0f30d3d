// The instance type, and an image for it.

import { ProviderError } from '../contract.js'

/** Account of Canonical, the publisher of Ubuntu, in each AWS partition. */
const CANONICAL = Object.freeze({ '': '099720109477', cn: '837727238323', gov: '513442679011' })

/** LTS releases with recent enough systemd and cloud-init, newest first. */
const RELEASES = Object.freeze(['noble-24.04', 'jammy-22.04'])

const ARCHITECTURES = Object.freeze({ x86_64: 'amd64', arm64: 'arm64' })

/**
 * @typedef {object} MachineType
 * @property {string} name
 * @property {'x86_64' | 'arm64'} architecture
 * @property {number} cores vCPUs
 * @property {number} memory bytes
 * @typedef {object} Image
 * @property {string} id
 * @property {string} name
 * @property {string} created ISO
 */

/**
 * @param {import('./client.js').Ec2} ec2 @param {string} region @param {string} name `t3.small`
 * @returns {Promise<MachineType>} @throws {ProviderError} there is no such type in the region
 */
export async function machineType(ec2, region, name) {
  const { InstanceTypes = [] } = await ec2.send(region, 'DescribeInstanceTypes', { InstanceTypes: [name] })
  const [found] = InstanceTypes
  if (found === undefined) throw new ProviderError(`${region}: no instance type ${name} here`)
  const architecture = found.ProcessorInfo?.SupportedArchitectures?.find(
    (/** @type {string} */ one) => one in ARCHITECTURES,
  )
  if (architecture === undefined)
    throw new ProviderError(`instance type ${name} is not x86_64 or arm64: drones need one of these`)
  return {
    name,
    architecture,
    cores: found.VCpuInfo?.DefaultVCpus ?? 1,
    memory: (found.MemoryInfo?.SizeInMiB ?? 0) * 2 ** 20,
  }
}

/** @param {any} image @returns {Image} */
const imageOf = image => ({ id: image.ImageId, name: image.Name ?? '', created: image.CreationDate ?? '' })

/**
 * @param {import('./client.js').Ec2} ec2 @param {string} region
 * @param {string} architecture of the machine
 * @param {string} wanted id of an image; '': the newest Ubuntu LTS
 * @returns {Promise<Image>} @throws {ProviderError}
 */
export async function findImage(ec2, region, architecture, wanted) {
  if (wanted !== '') {
    const { Images = [] } = await ec2.send(region, 'DescribeImages', { ImageIds: [wanted] })
    const [image] = Images
    if (image === undefined)
      throw new ProviderError(`${region}: no image ${wanted} here: images belong to a region`)
    if (image.Architecture !== architecture)
      throw new ProviderError(
        `${region}: image ${wanted} is for ${image.Architecture}, the instance type is ${architecture}`,
      )
    return imageOf(image)
  }
  const partition = region.startsWith('cn-') ? 'cn' : region.startsWith('us-gov-') ? 'gov' : ''
  const suffix = ARCHITECTURES[/** @type {keyof typeof ARCHITECTURES} */ (architecture)]
  const images = await ec2.all(region, 'DescribeImages', 'Images', {
    Owners: [CANONICAL[partition]],
    Filters: [
      // hvm-ssd, and since 24.04 hvm-ssd-gp3.
      {
        Name: 'name',
        Values: RELEASES.map(release => `ubuntu/images/hvm-ssd*/ubuntu-${release}-${suffix}-server-*`),
      },
      { Name: 'architecture', Values: [architecture] },
      { Name: 'state', Values: ['available'] },
    ],
  })
  for (const release of RELEASES) {
    const [newest] = images
      .filter(({ Name }) => Name.includes(`-${release}-`))
      .sort((a, b) => b.CreationDate.localeCompare(a.CreationDate))
    if (newest !== undefined) return imageOf(newest)
  }
  throw new ProviderError(
    `${region}: Canonical has no Ubuntu LTS image for ${architecture} here; pass one with --image`,
  )
}
