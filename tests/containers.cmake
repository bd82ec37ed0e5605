# What starts Tycho on a cluster, with stand-ins for the cluster.
tycho_script_test(launch_sb SCRIPT containers/launch_sb.sh LABELS containers)
tycho_script_test(batch_scripts SCRIPT containers/batch_scripts.sh LABELS containers)
tycho_script_test(helm_charts SCRIPT containers/helm_charts.sh LABELS containers)
tycho_script_test(image SCRIPT containers/image.sh LABELS containers)
tycho_script_test(build_image SCRIPT containers/build_image.sh TIMEOUT 7200 LABELS containers)
# Packages on bare machines: opt-in.
tycho_script_test(bare_packages SCRIPT containers/bare_packages.sh TIMEOUT 7200 LABELS containers)
tycho_script_test(bare_hub SCRIPT containers/bare_hub.sh TIMEOUT 3600 LABELS containers)
# On a real Slurm of several nodes on this machine, where it is installed. One at a time: each has its own daemons and ports.
foreach(story srun batch_scripts requeue time_limit lost_node dead_launcher cores prompt array_sweep)
  tycho_script_test(slurm_${story} SCRIPT slurm/${story}.sh TIMEOUT 600 LABELS containers torch slurm)
  set_tests_properties(slurm_${story} PROPERTIES RESOURCE_LOCK slurm)
endforeach()
