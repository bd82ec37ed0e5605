# What starts Tycho on a cluster, with stand-ins for the cluster.
tycho_script_test(launch_sb SCRIPT containers/launch_sb.sh LABELS containers)
tycho_script_test(batch_scripts SCRIPT containers/batch_scripts.sh LABELS containers)
tycho_script_test(helm_charts SCRIPT containers/helm_charts.sh LABELS containers)
tycho_script_test(image SCRIPT containers/image.sh LABELS containers)
# On a real Slurm of two nodes on this machine, where it is installed.
tycho_script_test(slurm SCRIPT slurm/slurm.sh TIMEOUT 600 LABELS containers torch)
